// What policies read of requests, found without an evaluation. An entry of its own: it loads src/cel.
export type { FieldRead } from '../cel-policy/expression-reads.ts';
export { matchReads } from './match-reads.ts';
export { moduleReads } from './module-reads.ts';
