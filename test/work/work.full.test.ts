// The same with processor time, for arguments as large as they can be, and for whole templates and expressions.
import { describe, it } from 'node:test';
import { fuzz } from './fuzz.ts';

/** Each repeated text alone, and as many mixtures. */
const ROUNDS = 100;

describe('the processor time', () => {
  it('of each function of templates is charged for', () => fuzz('templates', 'time', ROUNDS));
  it('of each builtin of Rego is charged for', () => fuzz('rego', 'time', ROUNDS));
  it('of each function of CEL is charged for', () => fuzz('cel', 'time', ROUNDS));
  it('of templates with loops of each function is charged for', () => fuzz('template-programs', 'time', ROUNDS));
  it('of expressions with nested loops is charged for', () => fuzz('cel-programs', 'time', ROUNDS));
});
