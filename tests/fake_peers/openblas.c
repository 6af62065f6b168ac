/* As much of OpenBLAS as `bench --against openblas` calls, by plain loops; with WRONG defined it multiplies wrongly. */
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb,
                 float beta, float* c, int ldc) {
  (void)order, (void)ta, (void)tb;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * lda + l] * b[l * ldb + j];
#ifdef WRONG
      sum *= 1.01f;
#endif
      c[i * ldc + j] = alpha * sum + (beta != 0 ? beta * c[i * ldc + j] : 0);
    }
}
void openblas_set_num_threads(int threads) { (void)threads; }
char* openblas_get_config(void) { return (char*)"plain loops 1.0 "; }
