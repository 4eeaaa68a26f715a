// What happens with one template of a policy. The order of the checks is upstream's: the first that fails decides.
import { groupVersionOf } from '../../resources/index.ts';
import { isJsonObject, type JsonObject, own, shortened, textOf, valueAt } from '../../values/index.ts';
import { unsupportedKind } from '../policy/unsupported-kinds.ts';
import { isConstraintTemplate } from './compliance-of.ts';
import { pendingMessage, templateErrorMessage } from './pending-message.ts';
import type { DependencyUnion } from './union-dependencies.ts';
import type { UnmetDependency, UnmetReason } from './unmet-dependencies.ts';

/** The template's object as it is on the cluster. */
export interface ExistingTemplate {
  /** The name of the policy that it belongs to; undefined if it belongs to none. */
  readonly policy: string | undefined;
  /** Its own `spec.pruneObjectBehavior`: what its deletion prunes. */
  readonly pruneObjectBehavior: string;
}

/** Whether the cluster serves the kind of a template. `message` says why not. */
export type TemplateMapping =
  | { readonly isServed: true; readonly isPolicyType: boolean }
  | { readonly isServed: false; readonly message: string };

/** The input of a plan. */
export interface TemplateFacts {
  /** The name of the policy on the cluster: `<namespace>.<name>`. */
  readonly policy: string;
  readonly index: number;
  /** See {@link hasUniqueNames}. */
  readonly hasUniqueNames: boolean;
  readonly objectDefinition: unknown;
  readonly ignorePending: boolean;
  readonly dependencies: DependencyUnion;
  readonly mapping: TemplateMapping;
  readonly unmet: readonly UnmetDependency[];
  /** Undefined if there is none. */
  readonly existing: ExistingTemplate | undefined;
  /** Why the templates of the hub could not be resolved. */
  readonly hubTemplateError: string | undefined;
}

/** `message` is the compliance message of the template, with its state in front. */
export type TemplatePlan =
  | { readonly type: 'error'; readonly template: string; readonly message: string }
  /** Templates of the hub failed: what was applied before is kept without evaluation. Upstream deletes it, and prunes nothing. */
  | { readonly type: 'unresolved'; readonly template: string; readonly message: string }
  /** Not created. */
  | PendingPlan<'pending'>
  /** Kept without evaluation: nothing is deleted. */
  | PendingPlan<'suspend'>
  /** Deleted, which prunes its objects. To be announced before. */
  | PendingPlan<'remove-because-unmet'>
  /** Created, or updated when it differs. */
  | { readonly type: 'apply'; readonly template: string };

interface PendingPlan<Type extends string> {
  readonly type: Type;
  readonly template: string;
  readonly message: string;
  readonly dependencies: readonly UnmetDependency[];
}

/**
 * Reasons that do not prove that a dependency is unmet, so that they remove nothing. The discovery cannot tell a removed
 * CRD from an aggregated API that is down; and a template that is removed because of a cycle never comes back.
 */
const REMOVES_NOTHING: ReadonlySet<UnmetReason> = new Set<UnmetReason>([
  'NoSuchKind',
  'NoStatus',
  'Stale',
  'Forbidden',
  'GetFailed',
  'Cycle',
]);

/** Values of `pruneObjectBehavior` that delete objects. */
const PRUNING: ReadonlySet<string> = new Set(['DeleteIfCreated', 'DeleteAll']);

/** Length of the definition in the message about its missing kind. Characters. */
const MAX_BODY_LENGTH = 1024;

export function planTemplate(facts: TemplateFacts): TemplatePlan {
  const { objectDefinition, index } = facts;
  const problem = policyProblem(facts);
  if (problem !== undefined || !isJsonObject(objectDefinition)) {
    return failure(`template-${index}`, problem ?? missingKind(objectDefinition));
  }
  const template = textOf(valueAt(objectDefinition, 'metadata', 'name'));
  const kindProblem = templateProblem(facts, objectDefinition, template);
  if (kindProblem !== undefined) {
    return failure(template, kindProblem);
  }
  if (facts.unmet.length > 0) {
    return unmetPlan(facts, objectDefinition, template);
  }
  const { hubTemplateError } = facts;
  return hubTemplateError === undefined
    ? { type: 'apply', template }
    : { type: 'unresolved', template, message: templateErrorMessage(hubTemplateError) };
}

/** Whether all templates have different names; those without a name do not count. */
export function hasUniqueNames(objectDefinitions: readonly unknown[]): boolean {
  const names = objectDefinitions.map((definition) => textOf(valueAt(definition, 'metadata', 'name'))).filter(Boolean);
  return new Set(names).size === names.length;
}

/** Checks until the template has a name, under which later problems are reported. */
function policyProblem({
  hasUniqueNames: isUnique,
  objectDefinition,
  dependencies,
  index,
}: TemplateFacts): string | undefined {
  if (!isUnique) {
    return 'All policy-template names must be unique within a policy';
  }
  if (textOf(valueAt(objectDefinition, 'kind')) === '') {
    return missingKind(objectDefinition);
  }
  if (dependencies.conflict !== undefined) {
    return `Failed to decode policy template with err: ${dependencies.conflict}`;
  }
  return textOf(valueAt(objectDefinition, 'metadata', 'name')) === ''
    ? `Failed to parse or get name from policy template at index ${index}`
    : undefined;
}

function missingKind(objectDefinition: unknown): string {
  const body = shortened(JSON.stringify(objectDefinition) ?? '', MAX_BODY_LENGTH);
  return `Failed to decode policy template with err: Object 'Kind' is missing in '${body}'`;
}

/** An object of another policy is refused before anything is removed; upstream removes it while dependencies are unmet. */
function templateProblem(
  { mapping, existing, policy }: TemplateFacts,
  objectDefinition: JsonObject,
  template: string,
): string | undefined {
  const [apiVersion, kind] = [textOf(own(objectDefinition, 'apiVersion')), textOf(own(objectDefinition, 'kind'))];
  const { group, version } = groupVersionOf(apiVersion);
  const unsupported = unsupportedKind(apiVersion, kind);
  if (unsupported !== undefined) {
    return unsupported;
  }
  if (!mapping.isServed) {
    return `Mapping not found, ${mappingAdvice({ apiVersion, kind })}: ${mapping.message}`;
  }
  if (!mapping.isPolicyType) {
    return `policy-template kind is not supported: ${group}/${version}, Kind=${kind}`;
  }
  if (existing === undefined || existing.policy === policy) {
    return undefined;
  }
  const where = existing.policy === undefined ? 'outside of a Policy' : `in policy ${existing.policy}`;
  return `Template name must be unique. Policy template with kind: ${kind} name: ${template} already exists ${where}`;
}

function mappingAdvice(type: { readonly apiVersion: string; readonly kind: string }): string {
  if (isConstraintTemplate(type)) {
    return 'check if Gatekeeper is installed';
  }
  return groupVersionOf(type.apiVersion).group === 'constraints.gatekeeper.sh'
    ? 'check if the required ConstraintTemplate has been deployed'
    : 'check if you have the CRD deployed';
}

function unmetPlan(
  { unmet: dependencies, existing, ignorePending }: TemplateFacts,
  objectDefinition: JsonObject,
  template: string,
): TemplatePlan {
  const message = pendingMessage(dependencies, ignorePending);
  const isKnown = dependencies.some(({ reason }) => !REMOVES_NOTHING.has(reason));
  // What the user declares now, and what the deletion of the existing object prunes.
  const declared = textOf(valueAt(objectDefinition, 'spec', 'pruneObjectBehavior'));
  const prunes = PRUNING.has(declared) && PRUNING.has(existing?.pruneObjectBehavior ?? '');
  const type = existing === undefined ? 'pending' : isKnown && prunes ? 'remove-because-unmet' : 'suspend';
  return { type, template, message, dependencies };
}

function failure(template: string, text: string): TemplatePlan {
  return { type: 'error', template, message: templateErrorMessage(text) };
}
