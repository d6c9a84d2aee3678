"""One cell after another: the client, the gates, the ledger.

Writes rows and judges cells; averages nothing. What the rows mean is the room `analyse`.
"""
