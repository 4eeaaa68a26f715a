import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { DYN } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import { MacroSet, MATH_MACROS, parse, STANDARD_MACROS } from '../syntax/index.ts';
import { Program } from '../program.ts';
import type { Library } from '../model/library.ts';
import { check, Declarations } from '../check/index.ts';
import { compileExpression, equalValues, OPTIONAL_LIBRARY, standardLibrary } from '../evaluate/index.ts';
import {
  AUTHORIZER,
  AuthorizerValue,
  EXTENSION_LIBRARIES,
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

/** Compiles an expression with cel-go's extensions instead of the Kubernetes libraries. */
function compileExtended(text: string): Program {
  const declarations = new Declarations({
    libraries: [standardLibrary(), OPTIONAL_LIBRARY, ...EXTENSION_LIBRARIES],
    variables: {},
    types: undefined,
    container: undefined,
  });
  const macros = new MacroSet([...STANDARD_MACROS, ...MATH_MACROS]);
  const checked = check(parse(text, { macros, optionalSyntax: true, escapedIdentifiers: false }), declarations);
  const functions = new Map(
    Array.from(declarations.functions.values(), ({ name, overloads }) => [
      name,
      overloads.map(({ overload }) => overload),
    ]),
  );
  const { expression, overloads, meanings } = checked;
  return new Program({
    checked,
    compiled: compileExpression({ expression, overloads, meanings, functions }),
    patternSize: 0,
    sizes: undefined,
  });
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

function assertExamples(libraries: readonly Library[], compile: (text: string) => Program): void {
  for (const { name, example } of libraryTable(libraries)) {
    assert.ok(example !== undefined, `${name} has an example`);
    const got = valueOf(compile(example.expression)) as Parameters<typeof equalValues>[0];
    const expected = valueOf(compile(example.result)) as Parameters<typeof equalValues>[0];
    assert.ok(equalValues(got, expected), `${example.expression} is ${example.result}`);
  }
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
    for (const libraries of [librariesFor(NEWEST), EXTENSION_LIBRARIES]) {
      const ids = libraries.flatMap(({ functions }) =>
        functions.flatMap(({ name, overloads }) => overloads.map(({ id }) => `${name} ${id}`)),
      );
      assert.deepEqual(ids.toSorted(), [...new Set(ids)].toSorted());
    }
  });

  test('document every function in one sentence', () => {
    for (const row of libraryTable([...KUBERNETES_LIBRARIES, ...MUTATION_LIBRARIES, ...EXTENSION_LIBRARIES])) {
      assert.match(row.summary, /^\S.*\.$/u, row.name);
      assert.ok(row.signature.includes(row.name) && row.signature.includes(' -> '), row.signature);
    }
  });

  test('return the results of their examples', () => {
    assertExamples([...KUBERNETES_LIBRARIES, ...MUTATION_LIBRARIES], (text) => kubernetes.compile(text));
    assertExamples(EXTENSION_LIBRARIES, compileExtended);
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
