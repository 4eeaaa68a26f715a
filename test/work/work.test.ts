// The work of functions never exceeds a factor of what they charge for: counted, so that each run finds the same.
import { describe, it } from 'node:test';
import { fuzz } from './fuzz.ts';

describe('the work that is counted', () => {
  it('of each function of templates is charged for', () => fuzz('templates', 'count', 6));
  it('of each builtin of Rego is charged for', () => fuzz('rego', 'count', 6));
  it('of each function of CEL is charged for', () => fuzz('cel', 'count', 5));
  it('of templates with loops of each function is charged for', () => fuzz('template-programs', 'count', 2));
});
