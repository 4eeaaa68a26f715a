import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { DYN } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { Program } from '../program.ts';
import { equalValues } from '../evaluate/index.ts';
import {
  AUTHORIZER,
  AuthorizerValue,
  KUBERNETES_LIBRARIES,
  librariesFor,
  libraryTable,
  MUTATION_LIBRARIES,
} from './index.ts';

const NEWEST = 37;

const authorizer = new AuthorizerValue({ username: 'admin' }, { authorize: () => ({ isAllowed: true, reason: '' }) });

function namesSince(since: number): string[] {
  const names = KUBERNETES_LIBRARIES.filter((library) => library.since === since).flatMap(({ functions }) =>
    functions.map(({ name }) => name),
  );
  return [...new Set(names)].toSorted();
}

const kubernetes = createEnvironment({
  kubernetesVersion: NEWEST,
  variables: { authorizer: AUTHORIZER, unused: DYN },
  libraries: MUTATION_LIBRARIES,
});

function valueOf(program: Program) {
  const { value } = program.run({ authorizer }, { budget: 10_000_000 });
  assert.ok(!(value instanceof EvaluationFailure), program.text);
  return value;
}

describe('the libraries', () => {
  test('have the functions that each Kubernetes version added', () => {
    assert.deepEqual(namesSince(28), [
      'add',
      'asApproximateFloat',
      'asInteger',
      'compareTo',
      'isGreaterThan',
      'isInteger',
      'isLessThan',
      'isQuantity',
      'quantity',
      'sign',
      'sub',
    ]);
    assert.deepEqual(namesSince(29), [
      'format',
      'sets.contains',
      'sets.equivalent',
      'sets.intersects',
      'strings.quote',
    ]);
    assert.deepEqual(namesSince(30), [
      'cidr',
      'containsCIDR',
      'containsIP',
      'family',
      'ip',
      'ip.isCanonical',
      'isCIDR',
      'isGlobalUnicast',
      'isIP',
      'isLinkLocalMulticast',
      'isLinkLocalUnicast',
      'isLoopback',
      'isUnspecified',
      'masked',
      'prefixLength',
      'string',
    ]);
    assert.deepEqual(namesSince(33), [
      'compareTo',
      'isGreaterThan',
      'isLessThan',
      'isSemver',
      'major',
      'minor',
      'patch',
      'semver',
    ]);
    assert.deepEqual(namesSince(34), [
      '@sortByAssociatedKeys',
      'distinct',
      'flatten',
      'lists.range',
      'reverse',
      'slice',
      'sort',
    ]);
    assert.deepEqual(namesSince(37), ['includes']);
  });

  test('of an old version have no later functions', () => {
    assert.ok(librariesFor(27).every(({ since }) => since !== undefined && since <= 27));
    assert.equal(librariesFor(NEWEST).length, KUBERNETES_LIBRARIES.length);
  });

  test('never declare an overload of a function twice', () => {
    const ids = librariesFor(NEWEST).flatMap(({ functions }) =>
      functions.flatMap(({ name, overloads }) => overloads.map(({ id }) => `${name} ${id}`)),
    );
    assert.deepEqual(ids.toSorted(), [...new Set(ids)].toSorted());
  });

  test('document every function in one sentence', () => {
    for (const row of libraryTable([...KUBERNETES_LIBRARIES, ...MUTATION_LIBRARIES])) {
      assert.match(row.summary, /^\S.*\.$/u, row.name);
      assert.ok(row.signature.includes(row.name) && row.signature.includes(' -> '), row.signature);
    }
  });

  test('return the results of their examples', () => {
    for (const { name, example } of libraryTable([...KUBERNETES_LIBRARIES, ...MUTATION_LIBRARIES])) {
      assert.ok(example !== undefined, `${name} has an example`);
      const got = valueOf(kubernetes.compile(example.expression)) as Parameters<typeof equalValues>[0];
      const expected = valueOf(kubernetes.compile(example.result)) as Parameters<typeof equalValues>[0];
      assert.ok(equalValues(got, expected), `${example.expression} is ${example.result}`);
    }
  });
});

test('the table has signatures in the notation of the documentation', () => {
  const rows = libraryTable(KUBERNETES_LIBRARIES);
  const signatures = rows.map(({ signature }) => signature);
  assert.ok(signatures.includes('string.indexOf(string, int) -> int'));
  assert.ok(signatures.includes('format.named(string) -> optional_type(kubernetes.NamedFormat)'));
  assert.ok(signatures.includes('kubernetes.URL.getQuery() -> map(string, list(string))'));
  assert.ok(rows.every(({ name }) => !name.startsWith('@')));
});
