"""A campaign of blocks: the client, what is observed, the gates, the ledger.

    campaign, visit, block  what is measured next, and side by side            cell_key     what determines a cell
    cell                    one cell: observation, then judge, then cell_row   estimate     how long it will take
    client, monitors        what is measured with                              ledger       where it is kept

Writes rows and judges cells; averages nothing. What the rows mean is the room `analyse`.
"""
