"""What ran: the one ledger of runs and of watched loops, what it amounts to, and where it contradicts itself.

A ledger states facts. It makes a mechanism of them; what an attacker learns from that is not known here.
"""
