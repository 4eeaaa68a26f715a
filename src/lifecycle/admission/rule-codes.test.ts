import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { OwnKindsRules } from './own-kinds-rules.ts';
import { REJECTIONS, WARNINGS } from './rule-codes.ts';
import { CONTROLLER, object, review, SPEC } from './testing/validation-cases.ts';

const PAGE = readFileSync(new URL('../../../docs/policy-validation.md', import.meta.url), 'utf8');

/** The first column of the tables of a section. */
function codesOf(heading: string): readonly string[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return Array.from(section.matchAll(/^\| `([a-z-]+)` \|/gm), ([, code = '']) => code);
}

describe('rules of the webhook for our own kinds', () => {
  it('are the ones in the documentation', () => {
    assert.deepEqual(codesOf('Errors').toSorted(), REJECTIONS.toSorted());
    assert.deepEqual(codesOf('Warnings').toSorted(), WARNINGS.toSorted());
  });

  it('give the messages of the example in the documentation', () => {
    const spec = {
      ...SPEC,
      module: 'builtin:cel',
      settings: { validations: [{ expression: "object.metadata.labels['team' != ''" }] },
      matchConditions: [{ name: 'not-mine', expression: "request.userinfo.username != 'me'" }],
      sideEffects: 'Some',
    };
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).validate(review('cap', object('cap', spec)));
    const causes = error?.details?.causes ?? [];
    const shown = causes.map(({ field, message }) => `* ${field}: ${message}\n`).join('');
    assert.ok(PAGE.includes(`is invalid:\n${shown}\`\`\`\n`), shown);
  });

  it('are all used', () => {
    const cwd = fileURLToPath(new URL('.', import.meta.url));
    const lints = '../../engine/cel-policy/lints/*.ts';
    const sources = globSync(['*.ts', lints], { cwd }).filter((file) => !/\.test\.ts$|^rule-codes\.ts$/.test(file));
    const text = sources.map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n');
    assert.deepEqual(
      [...REJECTIONS, ...WARNINGS].filter((code) => !text.includes(`'${code}'`)),
      [],
    );
  });
});
