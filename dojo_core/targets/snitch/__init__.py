"""Snitch: a small in-order RISC-V core (RV32IMAFD) with stream registers (SSR) and hardware loops (FREP).

Source: F. Zaruba, F. Schuiki, T. Hoefler, L. Benini, "Snitch: A Tiny Pseudo Dual-Issue Processor for Area
and Energy Efficient Execution of Floating-Point Intensive Workloads", IEEE Transactions on Computers
70(11), 2021.
"""
