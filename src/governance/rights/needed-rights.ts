// The rights that governance policies need to what they read and write, as far as that is known without resolving them.
import {
  CERTIFICATE_POLICIES,
  CONFIGURATION_POLICIES,
  GOVERNANCE_ANNOTATIONS,
  GOVERNANCE_GROUP,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  own,
  POLICIES,
  textOf,
  valueAt,
} from '../../resources/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { staticTemplate, UNKNOWN_VALUE } from '../templates/index.ts';
import { unsupportedKind } from '../policy/unsupported-kinds.ts';
import { objectIn } from '../../values/index.ts';

/** A right to a kind that may not be served. */
export interface NeededRight {
  readonly apiVersion: string;
  readonly kind: string;
  readonly verb: string;
  /** Absent: in all namespaces. */
  readonly namespace?: string;
}

export interface NeededRights {
  readonly rights: readonly NeededRight[];
  /** What else the policy may need, which is not known or not to be granted by default. */
  readonly notes: readonly string[];
}

const NONE: NeededRights = { rights: [], notes: [] };
/** Kinds are watched in all namespaces. */
const READ = ['list', 'watch'];
/** What a policy that enforces needs besides. It reads what it has created, to know that it was itself. */
const WRITES: Readonly<Record<string, readonly string[]>> = {
  musthave: ['get', 'create', 'update'],
  mustonlyhave: ['get', 'create', 'update'],
  mustnothave: ['delete'],
};
const RBAC_GROUP = 'rbac.authorization.k8s.io';

/** The rights that a Policy needs with all its templates, or a template on its own. */
export function neededRights(object: JsonObject): NeededRights {
  return isOfKind(object, POLICIES) ? ofPolicy(object) : ofTemplate(object, '');
}

function ofPolicy(policy: JsonObject): NeededRights {
  const spec = objectIn(policy, 'spec');
  if (own(spec, 'disabled') === true) {
    return NONE;
  }
  const isHubResolved = !isLiteral(policy);
  const templates = listIn(spec, 'policy-templates');
  const definitions = templates.map((template) => objectIn(template, 'objectDefinition'));
  const action = textOf(own(spec, 'remediationAction'));
  return together([
    ofDependencies([...listIn(spec, 'dependencies'), ...templates.flatMap((one) => listIn(one, 'extraDependencies'))]),
    ...definitions.map((definition) => ofTemplate(definition, action)),
    ...(isHubResolved ? definitions.map((definition) => ofLookups(definition, true)) : []),
  ]);
}

/** @param action of the Policy, which replaces that of the template */
function ofTemplate(definition: JsonObject, action: string): NeededRights {
  const { apiVersion, kind } = typeOf(definition);
  const unsupported = unsupportedKind(apiVersion, kind);
  if (unsupported !== undefined) {
    return { rights: [], notes: [unsupported] };
  }
  if (isOfKind(definition, CONFIGURATION_POLICIES)) {
    return ofConfiguration(definition, action);
  }
  if (isOfKind(definition, CERTIFICATE_POLICIES)) {
    return { rights: toVerbs(READ, { apiVersion: 'v1', kind: 'Secret' }), notes: [] };
  }
  // The controllers write the objects of other governance kinds with their own rights.
  const isForeign = groupVersionOf(apiVersion).group !== GOVERNANCE_GROUP;
  return isForeign ? ofKind({ apiVersion, kind }, [...READ, 'create', 'update', 'delete']) : NONE;
}

function ofConfiguration(policy: JsonObject, action: string): NeededRights {
  const spec = objectIn(policy, 'spec');
  const declared = textOf(own(spec, 'remediationAction')).toLowerCase();
  const isEnforced = (action === '' || declared === 'informonly' ? declared : action.toLowerCase()) === 'enforce';
  const prunes = own(spec, 'pruneObjectBehavior');
  const raw = rawTemplates(own(spec, 'object-templates-raw'), isLiteral(policy));
  const templates = [...listIn(spec, 'object-templates'), ...raw.templates];
  return together([
    { rights: [], notes: raw.notes },
    ...templates.map((template) => ofObjectTemplate(template, isEnforced, prunes)),
    ...(isLiteral(policy) ? [] : [ofLookups(spec, false)]),
  ]);
}

function ofObjectTemplate(template: JsonObject, isEnforced: boolean, prunes: JsonValue | undefined): NeededRights {
  const definition = objectIn(template, 'objectDefinition');
  const { apiVersion, kind } = typeOf(definition);
  const namespace = textOf(valueAt(definition, 'metadata', 'namespace'));
  const isDeleted = [own(template, 'recreateOption'), prunes].some((one) => one !== undefined && one !== 'None');
  const complianceType = textOf(own(template, 'complianceType')).toLowerCase();
  const writes = new Set([...(WRITES[complianceType] ?? []), ...(isDeleted ? ['delete'] : [])]);
  const read = ofKind({ apiVersion, kind }, READ);
  if (!isEnforced || read.rights.length === 0) {
    return read;
  }
  const where = namespace === '' || isUnknown(namespace) ? {} : { namespace };
  return {
    rights: [...read.rights, ...toVerbs([...writes], { apiVersion, kind, ...where })],
    notes: groupVersionOf(apiVersion).group === RBAC_GROUP && writes.has('create') ? [escalationNote(kind)] : [],
  };
}

/** An API server lets nobody grant rights that he does not have. */
function escalationNote(kind: string): string {
  const verb = kind.endsWith('Binding') ? 'bind on the role that it binds' : 'escalate';
  return `to write a ${kind}, the account must have all rights that it grants, or the verb ${verb}: grant these yourself`;
}

/** The templates of a text, in all cases that its conditions distinguish. */
function rawTemplates(
  raw: JsonValue | undefined,
  isLiteralText: boolean,
): { templates: JsonObject[]; notes: string[] } {
  if (typeof raw !== 'string') {
    return { templates: [], notes: [] };
  }
  const { texts } = staticTemplate(raw, isLiteralText);
  const parsed = texts.map((text) => parsedList(withoutValueLines(text)));
  const isKnown = texts.length > 0 && parsed.every((list) => list !== undefined);
  return {
    templates: parsed.flatMap((list) => list ?? []),
    notes: isKnown ? [] : ['object-templates-raw is known only once its templates are resolved'],
  };
}

/** Without lines that are only a value: it may be anything. */
function withoutValueLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => line.trim() !== UNKNOWN_VALUE)
    .join('\n');
}

/** The object templates of a text in YAML; undefined if it is none. */
function parsedList(text: string): readonly JsonObject[] | undefined {
  try {
    const documents = parseYaml(text).filter((document) => (document ?? undefined) !== undefined);
    const items = documents.flatMap((document): unknown => document);
    return items.every((item) => isJsonObject(item)) ? items : undefined;
  } catch (error) {
    if (error instanceof YamlSyntaxError) {
      return undefined;
    }
    throw error;
  }
}

/** What the texts of a value look up. @param isHub only templates of the hub, as long as the others are text */
function ofLookups(value: JsonValue, isHub: boolean): NeededRights {
  const found = [...new Set(textsIn(value))].map((text) => staticTemplate(text, isHub));
  const kinds = found.flatMap((one) => one.kinds);
  return {
    rights: kinds.flatMap((kind) => toVerbs(READ, kind)),
    notes: found.flatMap((one) => one.unknown),
  };
}

/** Texts with templates, keys included. */
function textsIn(value: JsonValue): readonly string[] {
  if (typeof value === 'string') {
    return value.includes('{{') ? [value] : [];
  }
  if (Array.isArray(value)) {
    return value.flatMap(textsIn);
  }
  return isJsonObject(value) ? Object.entries(value).flatMap(([key, item]) => [...textsIn(key), ...textsIn(item)]) : [];
}

/** Governance kinds are read by the controllers themselves. */
function ofDependencies(dependencies: readonly JsonObject[]): NeededRights {
  const foreign = dependencies
    .map(typeOf)
    .filter(({ apiVersion }) => groupVersionOf(apiVersion).group !== GOVERNANCE_GROUP);
  return together(foreign.map((type) => ofKind(type, READ)));
}

function ofKind(type: { readonly apiVersion: string; readonly kind: string }, verbs: readonly string[]): NeededRights {
  if (type.apiVersion === '' || type.kind === '') {
    return NONE;
  }
  return isUnknown(type.apiVersion) || isUnknown(type.kind)
    ? { rights: [], notes: ['a kind is known only once its templates are resolved'] }
    : { rights: toVerbs(verbs, type), notes: [] };
}

function toVerbs(verbs: readonly string[], what: Omit<NeededRight, 'verb'>): readonly NeededRight[] {
  return verbs.map((verb) => ({ ...what, verb }));
}

function together(all: readonly NeededRights[]): NeededRights {
  return {
    rights: all.flatMap(({ rights }) => rights),
    notes: [...new Set(all.flatMap(({ notes }) => notes))],
  };
}

function isUnknown(text: string): boolean {
  return text.includes('{{') || text.includes(UNKNOWN_VALUE);
}

function isLiteral(object: JsonObject): boolean {
  return valueAt(object, 'metadata', 'annotations', GOVERNANCE_ANNOTATIONS.disableTemplates) === 'true';
}

function isOfKind(object: JsonObject, type: { readonly group: string; readonly kind: string }): boolean {
  const { apiVersion, kind } = typeOf(object);
  return kind === type.kind && groupVersionOf(apiVersion).group === type.group;
}

function typeOf(object: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: textOf(own(object, 'apiVersion')), kind: textOf(own(object, 'kind')).trim() };
}

function listIn(object: JsonObject, field: string): readonly JsonObject[] {
  const value = own(object, field);
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
