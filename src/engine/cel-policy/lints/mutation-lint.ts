// Finds mutations that can never succeed, whatever the request: unknown operations and wrong paths of JSON patches, and atomic
// fields in ApplyConfigurations.
import { type Expression, findCertain } from '../../../cel/index.ts';
import { listed } from '../../../values/index.ts';
import type { CompiledMutation, CompiledPolicy } from '../compiled-policy.ts';
import { fieldOfPatch } from '../read-policy.ts';
import { configurationProblems } from './configuration-problems.ts';
import { fieldChain, type Variables } from './field-chain.ts';
import { findingAt, type LintFinding } from './lint-finding.ts';
import type { MutationProblem } from './mutation-problem.ts';
import type { MatchedSchema } from './matched-schemas.ts';
import { mutationTrial } from './mutation-trial.ts';
import { patchProblems } from './patch-problems.ts';

/** Mistakes that a message lists the kinds of, at most. */
const MAX_KINDS = 3;

/** Mutations that never succeed are errors, those that fail or have no effect sometimes warnings. @param root prefix of fields */
export function mutationLint(
  policy: CompiledPolicy,
  kinds: readonly MatchedSchema[],
  root: string,
): readonly LintFinding[] {
  if (policy.mutations.length === 0) {
    return [];
  }
  const findings = policy.mutations.flatMap((mutation, index) =>
    findingsOf(mutation, policy, kinds, `${root}mutations[${index}].${fieldOfPatch(mutation.patchType)}.expression`),
  );
  return [...findings, ...mutationTrial(policy, kinds, new Set(findings.map(({ field }) => field)), root)];
}

function findingsOf(
  mutation: CompiledMutation,
  policy: CompiledPolicy,
  kinds: readonly MatchedSchema[],
  field: string,
): readonly LintFinding[] {
  const { program, patchType } = mutation;
  const { expression } = program.checked;
  const find = patchType === 'JSONPatch' ? patchProblems : configurationProblems;
  const problems = kinds.map((kind) => ({ kind, problems: find(expression, policy.variables, kind) }));
  const neverSucceeds =
    problems.length > 0 &&
    problems.every((one) => alwaysEvaluates(expression, fatalNodes(one.problems), policy.variables));
  const distinct = new Map<string, { readonly problem: MutationProblem; readonly kinds: string[] }>();
  for (const { kind, problems: ofKind } of problems) {
    for (const problem of ofKind) {
      const key = `${problem.node.id} ${problem.message}`;
      const known = distinct.get(key) ?? { problem, kinds: [] };
      known.kinds.push(kind.kind ?? 'other kinds');
      distinct.set(key, known);
    }
  }
  return [...distinct.values()].map(({ problem, kinds: names }) => {
    const { node, message, isFatal } = problem;
    const where = names.length === kinds.length ? '' : ` (of ${listed(names, MAX_KINDS)})`;
    const isError = neverSucceeds && isFatal;
    const effect = isError
      ? ': the mutation can never succeed'
      : isFatal
        ? ': the mutation fails where it comes to this'
        : '';
    const finding = findingAt('mutation', field, program, node.start, `${message}${where}${effect}`);
    return isError ? { ...finding, isError: true } : finding;
  });
}

function fatalNodes(problems: readonly MutationProblem[]): ReadonlySet<number> {
  return new Set(problems.filter(({ isFatal }) => isFatal).map(({ node }) => node.id));
}

/** Whether every evaluation comes to one of some parts: of a condition, both outcomes have one. */
function alwaysEvaluates(root: Expression, parts: ReadonlySet<number>, variables: Variables): boolean {
  if (parts.size === 0) {
    return false;
  }
  if (root.kind === 'call' && root.function === '_?_:_') {
    const [condition, yes, no] = root.args;
    const comesTo = (node: Expression | undefined): boolean =>
      node !== undefined && alwaysEvaluates(node, parts, variables);
    return comesTo(condition) || (comesTo(yes) && comesTo(no));
  }
  if (root.kind === 'call' && root.function === '_+_') {
    return root.args.some((arg) => alwaysEvaluates(arg, parts, variables));
  }
  const isCertain = (node: Expression): boolean =>
    parts.has(node.id) ||
    (node.kind === 'comprehension' &&
      isNeverEmpty(node.range, variables) &&
      alwaysEvaluates(node.step, parts, variables));
  return findCertain(root, isCertain) !== undefined;
}

/** The containers of a pod or of a pod template. */
const CONTAINERS = /^(?:oldObject|object)\.spec\.(?:(?:jobTemplate\.spec\.)?template\.spec\.)?containers$/u;

/** Whether a list has an element in every object. */
function isNeverEmpty(range: Expression, variables: Variables): boolean {
  if (range.kind === 'call' && range.function === '_+_') {
    return range.args.some((arg) => isNeverEmpty(arg, variables));
  }
  const { root = '', fields = [] } = fieldChain(range, variables) ?? {};
  return CONTAINERS.test([root, ...fields].join('.'));
}
