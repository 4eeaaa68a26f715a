// Whether a policy can be asked about existing objects, and by which rules.
import { moduleReads, matchReads, type FieldRead } from '../engine/reads/index.ts';
import { moduleUses } from '../engine/definition/index.ts';
import { hasOrAll, type MatchRule, type PolicyMatch, splitResource } from '../resources/index.ts';
import type { AuditPolicy } from './audit-policy.ts';
import type { NotAuditableReason } from './coverage.ts';

/** Why a policy cannot be audited, or rules of it. */
export interface AuditRefusal {
  readonly reason: NotAuditableReason;
  readonly message: string;
}

/** A policy that matches existing objects as requests that create them, or why there is none. */
export type Auditability =
  | {
      readonly match: PolicyMatch;
      /** Of rules that are left out. */
      readonly refusals: readonly AuditRefusal[];
      /** What is taken for granted, see Coverage. */
      readonly assumes?: string;
    }
  | { readonly refusal: AuditRefusal };

/** What a policy without known reads is told of the request. */
const ASSUMPTION =
  'objects are judged as requests of no user to create them: what the module reads of a request is not known';

/** A variable that existing objects do not have, and what reads it. */
interface Unknown {
  readonly variable: string;
  readonly reason: NotAuditableReason;
  readonly what: string;
}

/** A bare `request` reads all of these. */
const UNKNOWN: readonly (Unknown & { readonly field?: string })[] = [
  { variable: 'request', field: 'userInfo', reason: 'UserInfo', what: 'who sends a request' },
  { variable: 'authorizer', reason: 'UserInfo', what: 'what the user of a request may do' },
  { variable: 'request', field: 'options', reason: 'Request', what: 'the options of a request' },
  { variable: 'request', field: 'uid', reason: 'Request', what: 'the uid of a request' },
  { variable: 'request', field: 'dryRun', reason: 'Request', what: 'whether a request is a dry run' },
];
/** Known where rules name CREATE only. */
const OF_UPDATES: readonly (Unknown & { readonly field?: string })[] = [
  { variable: 'oldObject', reason: 'OldObject', what: 'the object as it was before' },
  { variable: 'request', field: 'operation', reason: 'Operation', what: 'the operation of a request' },
];

/** @param hasCluster whether there is a cluster that policies can read */
export function auditability(policy: AuditPolicy, hasCluster: boolean): Auditability {
  const { match, backgroundAudit, definition } = policy;
  if (!backgroundAudit) {
    return refused('BackgroundAuditDisabled', 'spec.backgroundAudit is false');
  }
  if (match === undefined) {
    return refused('NoRules', 'the policy has no rules that say which kinds it is for');
  }
  const reader = moduleUses(definition).find((use) => use.contextAwareResources.length > 0);
  if (!hasCluster && reader !== undefined) {
    const kinds = reader.contextAwareResources.map(({ kind }) => kind).join(', ');
    return refused('NoCluster', `contextAwareResources: the policy reads ${kinds} of a cluster, and there is none`);
  }
  return byRules(policy, match);
}

function byRules({ definition }: AuditPolicy, match: PolicyMatch): Auditability {
  const modules = moduleReads(definition);
  const reads = [...matchReads(match), ...modules.flatMap(({ member, reads: own = [] }) => own.map(within(member)))];
  const isKnown = modules.every((module) => module.reads !== undefined && module.readsMore !== true);
  const isCreation = match.rules.every((rule) => !ofObjects(rule) || !hasOrAll(rule.operations, 'UPDATE'));
  const isOperationKnown = isKnown && findUnknown(reads, OF_UPDATES) === undefined;
  const unknown = findUnknown(reads, isCreation ? UNKNOWN : [...UNKNOWN, ...OF_UPDATES]);
  if (unknown !== undefined) {
    return { refusal: unknown };
  }
  const constrained = modules.find(
    ({ constraints }) => constraints !== undefined && !matchesCreations(constraints.resourceRules),
  );
  if (constrained !== undefined) {
    return refused(
      'Operation',
      'settings.matchConstraints: rules are for other requests than those that create objects',
    );
  }
  const judged = match.rules.map((rule) => ruleForAudit(rule, isOperationKnown));
  const rules = judged.filter((rule) => 'operations' in rule);
  const refusals = judged.filter((rule) => 'reason' in rule);
  const [first] = refusals;
  if (rules.length === 0) {
    return first === undefined ? refused('NoRules', 'spec.rules is empty') : { refusal: first };
  }
  return { match: { ...match, rules }, refusals, ...(isKnown ? {} : { assumes: ASSUMPTION }) };
}

/** The reads of a member, with its name. */
function within(member: string | undefined): (read: FieldRead) => FieldRead {
  const path = member === undefined ? 'settings' : `policies.${member}.settings`;
  return (read) => ({ ...read, field: `spec.${path}${read.field === '' ? '' : '.'}${read.field}` });
}

function findUnknown(reads: readonly FieldRead[], unknown: typeof UNKNOWN): AuditRefusal | undefined {
  for (const { field: place, path } of reads) {
    const [variable, first] = path;
    const found = unknown.find(
      (one) =>
        (variable === one.variable || variable.startsWith(`${one.variable}.`)) &&
        (one.field === undefined || first === undefined || first === one.field),
    );
    if (found !== undefined) {
      return {
        reason: found.reason,
        message: `${place} reads ${path.join('.')}: existing objects do not say ${found.what}`,
      };
    }
  }
  return undefined;
}

/** A rule that matches the creation of what it is for; or why existing objects do not match it. */
function ruleForAudit(rule: MatchRule, isOperationKnown: boolean): MatchRule | AuditRefusal {
  const named = rule.resources.join(', ');
  if (!ofObjects(rule)) {
    return { reason: 'Subresource', message: `${named}: requests for subresources leave no objects` };
  }
  if (hasOrAll(rule.operations, 'CREATE')) {
    return rule;
  }
  const operations = rule.operations.join(', ');
  if (!hasOrAll(rule.operations, 'UPDATE')) {
    return { reason: 'Operation', message: `${named}: existing objects say nothing about ${operations}` };
  }
  return isOperationKnown
    ? { ...rule, operations: ['CREATE'] }
    : { reason: 'Operation', message: `${named}: existing objects do not say how they were before an UPDATE` };
}

/** Whether a rule is for objects as a whole. */
function ofObjects({ resources }: MatchRule): boolean {
  return resources.some((resource) => ['', '*'].includes(splitResource(resource)[1]));
}

/** Whether settings match creations wherever they match updates, as objects are judged as created. */
function matchesCreations(rules: readonly { readonly operations: readonly string[] }[]): boolean {
  return (
    rules.length === 0 ||
    (rules.some(({ operations }) => hasOrAll(operations, 'CREATE')) &&
      rules.every(({ operations }) => hasOrAll(operations, 'CREATE') || !operations.includes('UPDATE')))
  );
}

function refused(reason: NotAuditableReason, message: string): Auditability {
  return { refusal: { reason, message } };
}
