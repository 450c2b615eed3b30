"""What clients and servers share: addresses, certificates, frames, and the messages in them."""
