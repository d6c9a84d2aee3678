"""Files on disk, and servers: fetch and make weights, start, watch, stop.

May start processes and ask a server for its health; measures nothing. No pandas.
"""
