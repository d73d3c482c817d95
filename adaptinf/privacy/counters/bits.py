"""Bits of counts as single machine instructions, for compiled code only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types


def _trailing_zeros(typingctx: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), build


def _bit_count(typingctx: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), build


def _top_bit(typingctx: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), 63), zeros)

    return types.int64(types.int64), build


_intrinsic: Any = extending.intrinsic

trailing_zeros: Callable[[Any], int] = _intrinsic(_trailing_zeros)
"""Trailing zero bits of a positive int64."""

bit_count: Callable[[Any], int] = _intrinsic(_bit_count)
"""Set bits of an int64."""

top_bit: Callable[[Any], int] = _intrinsic(_top_bit)
"""Position of the highest set bit of a positive int64."""
