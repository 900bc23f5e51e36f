"""The page of the service, in a real browser."""

import pytest

from tests.browser import Browser, chromium
from tests.service import client, serving

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="there is no chromium here"),
]

COLUMNS = {"warm": "number", "town": ["York", "Bath"]}


@pytest.fixture
def browser(tmp_path):
    made = Browser(tmp_path / "browser")
    yield made
    made.close()


def text(name):
    return f"document.getElementById('{name}').innerText"


def feed(own, count, start=0):
    for i in range(start, start + count):
        warm = (i * 37 % 100) / 50 - 1
        own.predict("rain", {"warm": warm, "town": "York"}, id=f"r{i}")
        if i >= 10:
            late = ((i - 10) * 37 % 100) / 50 - 1
            own.label("rain", f"r{i - 10}", "yes" if late > 0 else "no")


def test_it_is_live_and_comes_back_after_a_restart(browser, tmp_path):
    folder = tmp_path / "data"
    with serving(folder) as (address, _):
        own = client(address)
        browser.open(f"{address}/")
        browser.wait("!document.getElementById('nothing').hidden")
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        own.challenge("rain", "other", learner="polyak")
        feed(own, 60)
        browser.wait(f"{text('numbers')}.includes('60')")
        browser.wait("document.querySelectorAll('#loss canvas').length == 1")
        browser.wait(f"{text('learners')}.includes('other')")
        browser.wait(f"{text('certificate')}.includes('labels outstanding')")
        browser.wait(f"{text('weights')}.includes('warm')")
        browser.value("document.querySelector('#row input[name=warm]').value = '0.9'")
        browser.value("document.querySelector('#row button').click()")
        browser.wait(f"{text('answer')}.includes('yes')")
        port = int(address.rsplit(":", 1)[1])
    browser.wait(f"{text('state')}.includes('lost')")
    with serving(folder, port=port) as (address, _):
        browser.wait(f"{text('state')} == 'live'")
        feed(client(address), 15, start=60)
        browser.wait(f"{text('numbers')}.includes('75')")
        errors, addresses = browser.complaints()
        assert all(own.startswith((address, "about:", "data:")) for own in addresses)
        lost = ("net::ERR", "Failed to fetch", "network error")
        assert [e for e in errors if not any(word in str(e) for word in lost)] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
def test_it_fits_a_phone_and_both_themes(browser, tmp_path, width, theme):
    with serving(tmp_path / "data") as (address, _):
        own = client(address)
        own.create("rain", "rain", columns=COLUMNS, learner="fast")
        feed(own, 60)
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.call("Emulation.setDeviceMetricsOverride", **metrics)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        browser.open(f"{address}/")
        browser.wait("document.querySelectorAll('#loss canvas').length == 1")
        browser.wait(f"{text('weights')}.includes('warm')")
        assert browser.value("document.documentElement.scrollWidth") <= width
        back = browser.value("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(17, 21, 27)") == (theme == "dark")
        browser.screenshot(tmp_path / f"{theme}-{width}.png")
        assert browser.complaints()[0] == []


def test_a_token_is_asked_for(browser, tmp_path):
    token = "token-of-an-admin"
    with serving(tmp_path / "data", tokens={token: "admin"}) as (address, _):
        client(address, token=token).create("rain", "rain", columns=COLUMNS, learner="fast")
        browser.open(f"{address}/")
        browser.wait("!document.getElementById('token').hidden")
        browser.value(f"document.querySelector('#token input').value = '{token}'")
        browser.value("document.querySelector('#token button').click()")
        browser.wait(f"{text('state')} == 'live'")
        browser.wait("document.getElementById('models').value == 'rain'")
