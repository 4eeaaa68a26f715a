// Every documented reason of the status of admission policies has an answer.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { KEPT_REASONS, REASONS } from '../lifecycle/index.ts';
import { CHECKING, ISSUE_REASONS } from '../resources/index.ts';
import { reasonAnswer } from './reason-answers.ts';

/** The reasons in the tables of the sections `Issues` and `Reasons`, and those that texts of the section `Conditions` name. */
function documentedReasons(): readonly string[] {
  const page = readFileSync(new URL('../../docs/lifecycle.md', import.meta.url), 'utf8');
  const section = (heading: string): string =>
    (page.split(`\n### ${heading}\n`)[1] ?? assert.fail(heading)).split(/\n##+ /)[0] ?? '';
  const rows = ['Issues', 'Reasons'].flatMap((heading) => [...section(heading).matchAll(/^\| `(\w+)` \|/gm)]);
  const named = [...section('Conditions').matchAll(/(?:reason|\()\s?`([A-Z]\w+)`/g)];
  return [...rows, ...named].map(([, reason = '']) => reason).filter((reason) => !NO_REASONS.has(reason));
}

/** Names in the section `Conditions` that are no reasons. */
const NO_REASONS: ReadonlySet<string> = new Set(['True', 'False', 'Unknown']);

describe('answers of reasons', () => {
  it('exist for every documented reason', () => {
    const reasons = documentedReasons();
    assert.ok(reasons.length > 70, `expected the tables of docs/lifecycle.md, found ${reasons.length} reasons`);
    assert.deepEqual(
      reasons.filter((reason) => reasonAnswer(reason) === undefined),
      [],
    );
  });

  it('exist for every constant', () => {
    const constants = [REASONS, ISSUE_REASONS, KEPT_REASONS].flatMap((all) => Object.values<string>(all));
    assert.deepEqual(
      [...constants, CHECKING].filter((reason) => reasonAnswer(reason) === undefined),
      [],
    );
  });

  it('are sentences, and lead to the object where they name a command', () => {
    for (const reason of documentedReasons()) {
      const { meaning = '', toDo, command } = reasonAnswer(reason) ?? {};
      assert.match(meaning, /^[A-Z].*\.$/, reason);
      assert.match(toDo ?? 'Nothing.', command === undefined ? /^[A-Z].*[.)]$/ : /^[A-Z].*[^.]$/, reason);
    }
  });

  it('do not exist for what is no reason', () => {
    assert.equal(reasonAnswer('constructor'), undefined);
    assert.equal(reasonAnswer('FromTheFuture'), undefined);
  });
});
