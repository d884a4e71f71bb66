    .text
    .globl kernel_k
kernel_k:
    sw      zero, 0(a2)
    sw      zero, 8(a2)
    mv      s0, a0
    mv      s1, a1
    li      a3, 8
.L1:
    # y[{0}] = exp(x[{0}])
    fld     ft3, 0(s0)
    la      t2, constants
    fld     ft5, 0(t2)
    fadd.d  ft5, ft3, ft5
    #   x between what gives 0 and what gives infinity
    fld     ft6, 8(t2)
    fld     ft7, 16(t2)
    fmax.d  ft6, ft6, ft5
    fmin.d  ft6, ft6, ft7
    #   k, the integer next to x/ln(2), is the lower half of 1.5*2**52 + x/ln(2)
    fld     ft7, 24(t2)
    fld     fs0, 32(t2)
    fmadd.d fs0, ft6, fs0, ft7
    fmv.x.w t0, fs0
    feq.d   t1, ft5, ft5
    #   r = x - k*ln(2), ln(2) in two parts
    fsub.d  fs0, fs0, ft7
    fld     fs1, 40(t2)
    fnmsub.d ft6, fs0, fs1, ft6
    fld     fs1, 48(t2)
    fnmsub.d ft6, fs0, fs1, ft6
    #   e**r - 1 = r + r**2*p(r)
    fmul.d  ft7, ft6, ft6
    fmul.d  fs0, ft6, ft6
    fld     fs1, 56(t2)
    fld     fa0, 64(t2)
    fld     fa1, 72(t2)
    fld     fa2, 80(t2)
    fmadd.d fs1, fs1, fs0, fa1
    fld     fa1, 88(t2)
    fmadd.d fa0, fa0, fs0, fa2
    fld     fa2, 96(t2)
    fmadd.d fs1, fs1, fs0, fa1
    fld     fa1, 104(t2)
    fmadd.d fa0, fa0, fs0, fa2
    fld     fa2, 112(t2)
    fmadd.d fs1, fs1, fs0, fa1
    fld     fa1, 120(t2)
    fmadd.d fa0, fa0, fs0, fa2
    fld     fa2, 128(t2)
    fmadd.d fs1, fs1, fs0, fa1
    fmadd.d fa0, fa0, fs0, fa2
    fmadd.d fs1, fa0, ft6, fs1
    fmadd.d ft6, fs1, ft7, ft6
    addi    t1, t1, -1
    #   2**k, two factors, the second NaN where x is
    srai    t2, t0, 1
    sub     t0, t0, t2
    addi    t2, t2, 1023
    slli    t2, t2, 20
    sw      t2, 4(a2)
    fld     fs0, 0(a2)
    addi    t0, t0, 1023
    slli    t0, t0, 20
    or      t0, t0, t1
    sw      t0, 12(a2)
    fld     fa0, 8(a2)
    fmadd.d fs0, fs0, ft6, fs0
    fmul.d  ft4, fs0, fa0
    fsd     ft4, 0(s1)
    addi    s0, s0, 8
    addi    s1, s1, 8
    addi    a3, a3, -1
    bnez    a3, .L1
    ret
    .balign 8
constants:
    .dword  0x8000000000000000  # -0.0
    .dword  0xc087500000000000  # -746.0
    .dword  0x4086300000000000  # 710.0
    .dword  0x4338000000000000  # 6755399441055744.0
    .dword  0x3ff71547652b82fe  # 1.4426950408889634
    .dword  0x3fe62e42fee00000  # 0.6931471803691238
    .dword  0x3dea39ef35793c76  # 1.9082149292705877e-10
    .dword  0x3e928b0536ca98b3  # 2.763129518891394e-07
    .dword  0x3e5af858eaa698bc  # 2.5117869265110395e-08
    .dword  0x3efa0199688df89f  # 2.4801489903130397e-05
    .dword  0x3ec71dddfc850411  # 2.7557216279177034e-06
    .dword  0x3f56c16c185ab36d  # 0.0013888888947050885
    .dword  0x3f2a01a01bae37ba  # 0.00019841269917403125
    .dword  0x3fa555555555001f  # 0.0416666666665153
    .dword  0x3f8111111110d637  # 0.008333333333307198
    .dword  0x3fe000000000000b  # 0.5000000000000012
    .dword  0x3fc5555555555561  # 0.166666666666667
