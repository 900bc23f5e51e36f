"""The HTML page around a report: one self-contained file."""

from __future__ import annotations

from html import escape

__all__ = ["page"]

STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--soft:#666;--paper:#fff;--card:#f6f6f4;--rule:#ddd;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#8a6d3b;--c7:#666}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e6;--soft:#a5a5a0;--paper:#17181a;--card:#212326;
--rule:#3a3c40;--c0:#58b4f0;--c1:#ff8f4a;--c2:#3fd0a5;--c3:#f0a8d0;--c4:#f5c04a;--c5:#8fd3ff;
--c6:#c9a86a;--c7:#aaa}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.15rem;margin:2.2rem 0 .4rem}
.verdict{font-size:1.1rem;background:var(--card);border-left:4px solid var(--c0);padding:.7rem 1rem}
.soft,figcaption,.legend{color:var(--soft);font-size:.9rem}
figure{margin:.6rem 0 1.4rem}svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font-size:11px}svg .end{text-anchor:end}svg .mid{text-anchor:middle}
.grid{stroke:var(--rule);stroke-width:1;fill:none}.line{fill:none;stroke-width:1.8}
.line.dashed{stroke-dasharray:5 4}.area{opacity:.75}
.mark{stroke-width:1;fill:none}.mark.alarm{stroke:var(--c1);stroke-dasharray:2 3}
.mark.change{stroke:var(--soft);stroke-dasharray:6 4}
.line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}
.line.c3{stroke:var(--c3)}.line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}
.line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}
.area.c0{fill:var(--c0)}.area.c1{fill:var(--c1)}.area.c2{fill:var(--c2)}.area.c3{fill:var(--c3)}
.area.c4{fill:var(--c4)}.area.c5{fill:var(--c5)}.area.c6{fill:var(--c6)}.area.c7{fill:var(--c7)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.3rem 0;padding:0}
.key{display:inline-block;width:1.2rem;height:0;border-top:3px solid;margin-right:.35rem;
vertical-align:middle}.key.dashed{border-top-style:dashed}
.key.c0{color:var(--c0)}.key.c1{color:var(--c1)}.key.c2{color:var(--c2)}.key.c3{color:var(--c3)}
.key.c4{color:var(--c4)}.key.c5{color:var(--c5)}.key.c6{color:var(--c6)}.key.c7{color:var(--c7)}
.spark{width:150px;height:38px}.band{fill:var(--c0);opacity:.22}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;margin:.4rem 0}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--rule)}
th:first-child,td:first-child,.text{text-align:left}
.heat td{background:color-mix(in srgb,var(--c0) calc(var(--share)*85%),transparent)}
details{margin:.6rem 0}summary{cursor:pointer}summary:focus-visible,a:focus-visible,
label:focus-within{outline:2px solid var(--c1);outline-offset:2px}
pre{overflow-x:auto;background:var(--card);padding:.7rem;font-size:.8rem}
fieldset{border:0;padding:0;margin:.5rem 0;display:flex;flex-wrap:wrap;gap:.3rem 1rem}
nav a{color:var(--c0);margin-right:1rem}
.line,.mark,.grid{vector-effect:non-scaling-stroke}
@media(max-width:600px){.changes tr{display:grid;grid-template-columns:1fr 150px 4.5rem;
align-items:center;border-bottom:1px solid var(--rule)}.changes th,.changes td{border:0}
.changes td.text{grid-column:1/-1}.changes th.text:last-child{display:none}
svg text{font-size:19px}svg .name,svg .time1{display:none}
svg .time0{transform:translateY(5px)}}
@media print{details{display:block}}
"""

#: Check boxes show and hide runs; without scripts all runs are shown.
SCRIPT = """
document.querySelectorAll('[data-run]').forEach(box=>box.addEventListener('change',()=>{
document.querySelectorAll('.run'+box.dataset.run).forEach(l=>l.style.display=box.checked?'':'none')}))
"""


def page(title: str, body: str) -> str:
    """Return a whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main><script>{SCRIPT}</script></body></html>\n"
    )
