// Regular expressions. Not exported by go/index.ts, so that the engine for them is loaded only where it is used.
export { compilePattern } from './compile-pattern.ts';
export type { Pattern } from './compile-pattern.ts';
