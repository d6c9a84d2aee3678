"""What the report asserts, as data: expressions over named values, checks, next steps, reproduction."""
