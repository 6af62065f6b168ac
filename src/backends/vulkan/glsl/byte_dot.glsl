// The sum of the products of four signed bytes of two words (OpSDot of SPV_KHR_integer_dot_product, on packed words).
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int signed_dot(int a, int b, spirv_literal int four_bytes);
