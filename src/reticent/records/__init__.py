"""What ran: ledgers of runs and of watched loops, the faults in them, and what contradicts itself.

A record states facts. It makes a mechanism of them; what an attacker learns from that is not known here.
"""
