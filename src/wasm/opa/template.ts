import type { OpaBuiltin } from './builtin.ts';
export const templateBuiltins: readonly (readonly [string, OpaBuiltin])[] = [];
