    .text
    .globl kernel_vadd
kernel_vadd:
    # 3 streams
    li      t0, 255
    .insn   i 0x2b, 2, x0, t0, 95  # scfgwi: bound 0 of all streams
    li      t0, 8
    .insn   i 0x2b, 2, x0, t0, 223  # scfgwi: stride 0 of all streams
    .insn   i 0x2b, 2, x0, a0, 768  # scfgwi: read from, 1 dims of ft0
    .insn   i 0x2b, 2, x0, a1, 769  # scfgwi: read from, 1 dims of ft1
    .insn   i 0x2b, 2, x0, a2, 898  # scfgwi: write from, 1 dims of ft2
    csrrsi  zero, 1984, 1  # streams on
    li      s0, 64
.L1:
    # y[{0}*4+{1}] = x[{0}*4+{1}] + w[{0}*4+{1}]
    fadd.d  ft2, ft0, ft1
    fadd.d  ft2, ft0, ft1
    fadd.d  ft2, ft0, ft1
    fadd.d  ft2, ft0, ft1
    addi    s0, s0, -1
    bnez    s0, .L1
    fmv.x.w t0, ft3
    mv      t0, t0  # wait for the FPU
    csrrci  zero, 1984, 1  # streams off
    ret
