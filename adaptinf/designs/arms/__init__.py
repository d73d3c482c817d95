"""Finitely many arms without contexts."""
