"""Names and addresses of hosts in settings and requests."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that listens on `host`."""
    return is_local_name(host) or (is_address(host) and ip_address(host).is_loopback)


def is_local_name(host: str) -> bool:
    """Whether every resolver resolves this name to this machine (RFC 6761)."""
    return host == "localhost" or host.endswith(".localhost")


def is_address(host: str) -> bool:
    """Whether `host` is an address instead of a name; IPv6 without brackets."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
