// Compiling modules. An entry of its own: it loads src/wasm, which only the threads that run or compile modules need.
export { compilePolicyModule, DEFAULT_MEMORY_LIMIT_BYTES, loadPolicyModule } from './policy-module.ts';
