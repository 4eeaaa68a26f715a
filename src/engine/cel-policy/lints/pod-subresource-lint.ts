// Finds policies on pods whose rules leave out the subresources by which what they look at changes.
import { type Expression, expressionsOf, type Program } from '../../../cel/index.ts';
import type { RequestRule } from '../../../resources/index.ts';
import {
  EPHEMERAL_CONTAINERS_MISSED,
  matchesPods,
  missesEphemeralContainers,
  missesUpdates,
} from './pod-subresources.ts';
import { fieldChain, type Variables } from './field-chain.ts';
import { findingAt, type LintFinding, type Programs } from './lint-finding.ts';

const LOOKUPS: ReadonlySet<string> = new Set(['_?._', '_[_]', '_[?_]']);
/** Fields that all containers of a pod have, and that policies are about. */
const FIELDS_OF_CONTAINERS: ReadonlySet<string> = new Set(['image', 'imagePullPolicy', 'securityContext']);
const OBJECTS: ReadonlySet<string | undefined> = new Set(['object', 'oldObject']);

/** What is missed, at the first expression that looks at it. */
interface Miss {
  readonly test: (node: Expression, variables: Variables) => boolean;
  readonly message: string;
}

/** Expressions about what is changed without a request for the object itself. */
export function podSubresourceLint(
  programs: Programs,
  variables: Variables,
  rules: readonly RequestRule[],
): readonly LintFinding[] {
  return missesOf(programs, variables, rules).flatMap(({ test, message }) => {
    const found = firstNode(programs, (node) => test(node, variables));
    return found === undefined
      ? []
      : [findingAt('pod-subresource', found.field, found.program, found.node.start, message)];
  });
}

function missesOf(programs: Programs, variables: Variables, rules: readonly RequestRule[]): readonly Miss[] {
  return [
    ...ephemeralMiss(programs, variables, rules),
    ...(missesUpdates(rules, 'resize') ? [{ test: readsResources, message: RESIZE_MISSED }] : []),
  ];
}

const RESIZE_MISSED =
  'resources of containers are changed in running pods by pods/resize, which the rules leave out: add it to resources, with the operation UPDATE';

/** Ephemeral containers are looked at and not matched, or containers are looked at and not these. */
function ephemeralMiss(programs: Programs, variables: Variables, rules: readonly RequestRule[]): readonly Miss[] {
  const isRead = (name: string): boolean => firstNode(programs, (node) => lastField(node) === name) !== undefined;
  if (isRead('ephemeralContainers')) {
    const test = (node: Expression): boolean => lastField(node) === 'ephemeralContainers';
    return missesEphemeralContainers(rules) ? [{ test, message: EPHEMERAL_CONTAINERS_MISSED }] : [];
  }
  const isAboutContainers =
    matchesPods(rules) && firstNode(programs, (node) => isFieldOfContainer(node, variables)) !== undefined;
  return isAboutContainers ? [{ test: readsContainers, message: otherContainersMissed(isRead('initContainers')) }] : [];
}

function otherContainersMissed(readsInitContainers: boolean): string {
  const others = readsInitContainers ? 'ephemeral containers' : 'init containers and ephemeral containers';
  const lists = readsInitContainers ? 'ephemeralContainers' : 'initContainers and object.spec.ephemeralContainers';
  return `${others} are not looked at: they are in object.spec.${lists}, and ephemeral ones are added (kubectl debug) by pods/ephemeralcontainers only, with the operation UPDATE`;
}

interface FoundNode {
  readonly field: string;
  readonly program: Program;
  readonly node: Expression;
}

function firstNode(programs: Programs, test: (node: Expression) => boolean): FoundNode | undefined {
  for (const [field, program] of programs) {
    const node = [...expressionsOf(program.checked.expression)].find(test);
    if (node !== undefined) {
      return { field, program, node };
    }
  }
  return undefined;
}

function isFieldOfContainer(node: Expression, variables: Variables): boolean {
  const field = lastField(node);
  return (
    field !== undefined && FIELDS_OF_CONTAINERS.has(field) && fieldChain(node, variables)?.fields.at(-2) !== 'spec'
  );
}

function readsContainers(node: Expression, variables: Variables): boolean {
  const { root, fields = [] } = (lastField(node) === 'containers' && fieldChain(node, variables)) || {};
  return OBJECTS.has(root) && fields.join('.') === 'spec.containers';
}

function readsResources(node: Expression, variables: Variables): boolean {
  const operand = node.kind === 'select' ? node.operand : node.kind === 'call' ? node.args[0] : undefined;
  const field = lastField(node);
  const isPart = field === 'limits' || field === 'requests';
  return isPart && operand !== undefined && fieldChain(operand, variables)?.fields.at(-1) === 'resources';
}

/** The field that a node selects, tests or looks up. */
function lastField(node: Expression): string | undefined {
  if (node.kind === 'select') {
    return node.field;
  }
  const [, key] = node.kind === 'call' && LOOKUPS.has(node.function) ? node.args : [];
  return key?.kind === 'literal' && typeof key.value === 'string' ? key.value : undefined;
}
