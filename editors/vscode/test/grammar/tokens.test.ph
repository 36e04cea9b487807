// SYNTAX TEST "source.phobos" "every kind of token"
// run: kernel=k N=8 X=iota
// <------------------------ comment.line.double-slash.header.phobos
// ^^^ keyword.other.header.phobos
//      ^^^^^^ string.unquoted.header.phobos
// phobos: ignore[PH203] for a reason
// <---------------------------------- comment.line.double-slash.directive.phobos
// ^^^^^^^ keyword.other.directive.phobos
//         ^^^^^^ keyword.control.directive.phobos

@autotune(TILE in [256, 1024], K in [0x10])
// <- meta.attribute.phobos punctuation.definition.attribute.phobos
//^^^^^^^ entity.name.function.decorator.phobos
//       ^ punctuation.section.group.begin.phobos
//        ^^^^ variable.other.constant.phobos
//             ^^ keyword.operator.word.in.phobos
//                 ^^^ constant.numeric.integer.phobos
//                                   ^^^^ constant.numeric.hex.phobos
//                                        ^ punctuation.section.group.end.phobos
@persistent
//^^^^^^^^^ entity.name.function.decorator.phobos
@nonsense
//^^^^^^^ entity.name.function.decorator.unknown.phobos
@aligned(N = TILE)
//       ^ variable.other.constant.phobos
//         ^ keyword.operator.assignment.phobos
//           ^^^^ variable.other.phobos
@tensorcore(wmma)
//          ^^^^ constant.language.flag.phobos

 kernel k(X: tensor<f32>[N, 4], BAR: tensor<i32>[2], a: f32) {
//^^^^^ storage.type.function.phobos
//      ^ entity.name.function.phobos
//       ^ punctuation.section.parameters.begin.phobos
//        ^ variable.parameter.phobos
//           ^^^^^^ storage.type.aggregate.phobos
//                 ^ punctuation.definition.typeparameters.begin.phobos
//                  ^^^ support.type.primitive.phobos
//                       ^ variable.parameter.dimension.phobos
//                          ^ constant.numeric.integer.phobos
//                                                   ^ variable.parameter.phobos
//                                                      ^^^ support.type.primitive.phobos
  let p = ctx.block.x
//^^^ storage.type.phobos
//    ^ variable.other.phobos
//      ^ keyword.operator.assignment.phobos
//        ^^^ variable.language.ctx.phobos
//           ^ punctuation.accessor.phobos
//            ^^^^^ support.variable.property.phobos
//                  ^ support.variable.property.phobos
  var t: tile<bf16>[4, 4] = 1.5e-3
//^^^ storage.type.phobos
//       ^^^^ storage.type.aggregate.phobos
//            ^^^^ support.type.primitive.phobos
//                          ^^^^^^ constant.numeric.float.phobos
  for<unroll 2> i in range(0, N - 1, 4) {
//^^^ keyword.control.loop.phobos
//    ^^^^^^ storage.modifier.unroll.phobos
//                ^^ keyword.operator.word.in.phobos
//                   ^^^^^ support.function.builtin.phobos
//                              ^ keyword.operator.arithmetic.phobos
    if a <= 2.0 && true || !done {
//  ^^ keyword.control.conditional.phobos
//       ^^ keyword.operator.comparison.phobos
//          ^^^ constant.numeric.float.phobos
//              ^^ keyword.operator.logical.phobos
//                 ^^^^ constant.language.boolean.phobos
//                         ^ keyword.operator.logical.phobos
      grid_barrier(BAR) // all of them
//    ^^^^^^^^^^^^ support.function.barrier.phobos
//                 ^^^ variable.other.phobos
//                      ^^^^^^^^^^^^^^ comment.line.double-slash.phobos
    } else {
//    ^^^^ keyword.control.conditional.phobos
      X[i :+ 4, 0] += gelu(exp(mine(t))) << 2 & 1
//        ^^ keyword.operator.span.phobos
//                 ^^ keyword.operator.assignment.compound.phobos
//                    ^^^^ support.function.library.phobos
//                                       ^^ keyword.operator.bitwise.phobos
      break; continue
//    ^^^^^ keyword.control.loop.phobos
//         ^ punctuation.terminator.statement.phobos
//           ^^^^^^^^ keyword.control.loop.phobos
    }
  }
  while exp == 1 { }
//^^^^^ keyword.control.loop.phobos
//      ^^^ variable.other.phobos - support.function
//          ^^ keyword.operator.comparison.phobos
}

 fn f(x: f32) -> f32 { return f16(x) }
//^ storage.type.function.phobos
//  ^ entity.name.function.phobos
//            ^^ keyword.operator.arrow.phobos
//               ^^^ support.type.primitive.phobos
//                     ^^^^^^ keyword.control.return.phobos
