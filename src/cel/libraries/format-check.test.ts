import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Expression } from '../model/ast.ts';
import { MacroSet, parse } from '../syntax/index.ts';
import { DYN, INT, STRING } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { checkFormat } from './format-check.ts';

function typeOf(node: Expression): CelType {
  if (node.kind === 'literal') {
    return typeof node.value === 'string' ? STRING : INT;
  }
  return node.kind === 'list' ? { kind: 'list', element: DYN } : DYN;
}

function problemOf(text: string): string | undefined {
  const { expression } = parse(text, { macros: new MacroSet([]), optionalSyntax: false, escapedIdentifiers: false });
  assert.ok(expression.kind === 'call');
  return checkFormat(expression, typeOf)?.message;
}

test('reports the compile errors of API servers for calls of format', () => {
  assert.equal(problemOf("'%s %d'.format(['a', 1])"), undefined);
  assert.equal(
    problemOf("'%d'.format(['a'])"),
    'error during formatting: decimal clause can only be used on integers, was given string',
  );
  assert.equal(problemOf("'%s %s'.format([1])"), 'index 1 out of range');
  assert.equal(problemOf("'%s'.format([1, 2])"), 'too many arguments supplied to string.format (expected 1, got 2)');
  assert.equal(problemOf("'%q'.format([1])"), 'could not parse formatting clause: unrecognized formatting clause "q"');
  assert.equal(problemOf("'%'.format([])"), 'unexpected end of string');
});

test('reports nothing that only an evaluation can find', () => {
  assert.equal(problemOf("'%d'.format(x)"), undefined);
  assert.equal(problemOf("x.format(['a'])"), undefined);
  assert.equal(problemOf("'%d'.format([x])"), undefined);
});
