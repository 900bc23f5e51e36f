"""The application for tables of one's own: tables, runs, the command line."""
