// StableHLO of a matmul of two dequantized FP8 operands and a relu. `python -m hlofp8 to-hlo` converts it to an HloModuleProto.
module @scaled {
  func.func public @main(%x: tensor<32x64xf8E4M3FN>, %w: tensor<64x16xf8E4M3FN>, %scale: tensor<f32>) -> tensor<32x16xf32> {
    %0 = stablehlo.convert %x : (tensor<32x64xf8E4M3FN>) -> tensor<32x64xf32>
    %1 = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<32x64xf32>
    %3 = stablehlo.convert %w : (tensor<64x16xf8E4M3FN>) -> tensor<64x16xf32>
    %4 = stablehlo.dot_general %2, %3, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>
    %5 = stablehlo.constant dense<0.0> : tensor<32x16xf32>
    %6 = stablehlo.maximum %4, %5 : tensor<32x16xf32>
    return %6 : tensor<32x16xf32>
  }
}
