"""What is made of the library for people with a table: tables, runs, the command line."""
