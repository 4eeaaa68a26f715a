import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { OwnKindsRules } from './own-kinds-rules.ts';
import { REJECTIONS, WARNINGS } from './rule-codes.ts';
import { CONTROLLER, object, review, SPEC } from './testing/judgement.ts';

const PAGE = readFileSync(new URL('../../../docs/policy-validation.md', import.meta.url), 'utf8');

/** The first column of the tables of a section. */
function codesOf(heading: string): readonly string[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return Array.from(section.matchAll(/^\| `([a-z-]+)` \|/gm), ([, code = '']) => code);
}

describe('rules of the webhook for our own kinds', () => {
  it('are all in the documentation, and nothing else is', () => {
    assert.deepEqual(codesOf('Errors').toSorted(), REJECTIONS.toSorted());
    assert.deepEqual(codesOf('Warnings').toSorted(), WARNINGS.toSorted());
  });

  it('say what the example in the documentation shows', () => {
    const spec = {
      ...SPEC,
      module: 'builtin:cel',
      settings: { validations: [{ expression: "object.metadata.labels['team' != ''" }] },
      matchConditions: [{ name: 'not-mine', expression: "request.userinfo.username != 'me'" }],
      sideEffects: 'Some',
    };
    const { error } = new OwnKindsRules({ controllerUser: CONTROLLER }).judge(review('cap', object('cap', spec)));
    const causes = error?.details?.causes ?? [];
    const shown = causes.map(({ field, message }) => `* ${field}: ${message}\n`).join('');
    assert.ok(PAGE.includes(`is invalid:\n${shown}\`\`\`\n`), shown);
  });

  it('are all asked for', () => {
    const cwd = fileURLToPath(new URL('.', import.meta.url));
    const sources = globSync('*.ts', { cwd }).filter((file) => !/\.test\.ts$|^rule-codes\.ts$/.test(file));
    const text = sources.map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n');
    assert.deepEqual(
      [...REJECTIONS, ...WARNINGS].filter((code) => !text.includes(`'${code}'`)),
      [],
    );
  });
});
