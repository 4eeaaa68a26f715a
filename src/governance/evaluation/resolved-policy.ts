// A ConfigurationPolicy with its templates resolved.
import {
  type ConfigurationPolicy,
  GOVERNANCE_ANNOTATIONS,
  groupVersionOf,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  own,
  textOf,
  valueAt,
} from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import type {
  DefinitionContext,
  DefinitionResolver,
  EvaluatedPolicy,
  ObjectTemplate,
  ResolvedDefinition,
} from '../configuration/index.ts';
import {
  hasTemplates,
  resolveTemplates,
  type TemplateObjects,
  type TemplateOptions,
  type TemplateResolution,
} from '../templates/index.ts';
import type { ForeseenObject } from './evaluation-objects.ts';
import { NotYetRead } from './object-questions.ts';

/** Object templates of one policy, those of `object-templates-raw` too. */
const MAX_OBJECT_TEMPLATES = 10_000;
const COMPLIANCE_TYPES: ReadonlySet<string> = new Set(['musthave', 'mustonlyhave', 'mustnothave']);

/** The policy as it is evaluated, or why its templates cannot be resolved. */
export type ResolvedPolicy = { readonly policy: EvaluatedPolicy } | { readonly failure: string };

/**
 * Resolves `object-templates-raw`; the definitions of `object-templates` are resolved for each object.
 * @throws NotYetRead
 */
export function resolvedPolicy(policy: ConfigurationPolicy, objects: TemplateObjects): ResolvedPolicy {
  const { spec, metadata } = policy;
  const isLiteral = metadata.annotations?.[GOVERNANCE_ANNOTATIONS.disableTemplates] === 'true';
  const raw = spec['object-templates-raw'];
  const resolved: RawTemplates =
    raw === undefined
      ? { templates: (spec['object-templates'] ?? []).map((template) => asJson(template)) }
      : rawTemplates(raw, isLiteral, objects);
  if ('failure' in resolved) {
    return resolved;
  }
  const { namespaceSelector, remediationAction } = spec;
  return {
    policy: {
      policyName: metadata.name ?? '',
      remediationAction,
      // The schema of the kind, or `checkedTemplates`, has checked them.
      templates: resolved.templates as unknown as readonly ObjectTemplate[],
      ...(namespaceSelector === undefined ? {} : { namespaceSelector }),
      ...(isLiteral || raw !== undefined ? {} : { resolve: definitionResolver(objects) }),
      ...(resolved.isSensitive === true ? { resolve: SENSITIVE, isSensitive: true } : {}),
    },
  };
}

/** The objects that a policy is sure to ask for: those of templates that are as they are written. */
export function foreseenObjects({ spec }: ConfigurationPolicy): readonly ForeseenObject[] {
  return (spec['object-templates'] ?? [])
    .filter(({ objectDefinition }) => !hasTemplates(objectDefinition))
    .map(({ objectDefinition }) => ({
      apiVersion: textOf(own(objectDefinition, 'apiVersion')),
      kind: textOf(own(objectDefinition, 'kind')).trim(),
      namespace: textOf(valueAt(objectDefinition, 'metadata', 'namespace')).trim(),
      name: textOf(valueAt(objectDefinition, 'metadata', 'name')).trim(),
    }))
    .filter(({ kind, apiVersion }) => kind !== '' && groupVersionOf(apiVersion).version !== '');
}

function definitionResolver(objects: TemplateObjects): DefinitionResolver {
  return ({ objectDefinition }, context): ResolvedDefinition => {
    if (!hasTemplates(objectDefinition)) {
      return { type: 'resolved', definition: objectDefinition, isSensitive: false };
    }
    const result = resolveTemplates(objectDefinition, { objects, context: variables(context) });
    const usedSensitive = result.usedSensitive || mayReadItself(objectDefinition, context);
    switch (result.state) {
      case 'unknown':
        throw new NotYetRead();
      case 'skipped':
        return { type: 'skipped' };
      case 'failed':
        return { type: 'failed', message: failureText({ ...result, usedSensitive }) };
      case 'resolved':
        return isJsonObject(result.value)
          ? { type: 'resolved', definition: result.value, isSensitive: usedSensitive }
          : { type: 'failed', message: 'the object definition is no object after template resolution' };
      default:
        return result satisfies never;
    }
  };
}

/** Whether the template of a Secret may read the Secret itself, by the variable `.Object`. */
function mayReadItself(definition: JsonObject, { live }: DefinitionContext): boolean {
  const isSecret = textOf(own(definition, 'kind')).trim() === 'Secret';
  return isSecret && live() !== undefined && JSON.stringify(definition).includes('Object');
}

/** Those that the place of the object gives a value; `.Object` is empty while the object does not exist. */
function variables({
  name,
  namespace,
  live,
  isUnserved = false,
}: DefinitionContext): NonNullable<TemplateOptions['context']> {
  return {
    ...(name === '' && !isUnserved ? {} : { Object: asJson(live() ?? {}), ObjectName: name }),
    ...(namespace === '' && !isUnserved ? {} : { ObjectNamespace: namespace }),
  };
}

/** Definitions that were made from Secrets, without templates left. */
const SENSITIVE: DefinitionResolver = ({ objectDefinition }) => ({
  type: 'resolved',
  definition: objectDefinition,
  isSensitive: true,
});

type RawTemplates =
  | { readonly templates: readonly JsonObject[]; readonly isSensitive?: boolean }
  | { readonly failure: string };

function rawTemplates(raw: string, isLiteral: boolean, objects: TemplateObjects): RawTemplates {
  const text = isLiteral ? raw.replaceAll('{{', '{{ "{{" }}') : raw;
  const result = resolveTemplates(text, { objects });
  switch (result.state) {
    case 'unknown':
      throw new NotYetRead();
    case 'skipped':
      return { templates: [] };
    case 'failed':
      return { failure: failureText(result) };
    case 'resolved':
      return rawResult(result);
    default:
      return result satisfies never;
  }
}

function rawResult({ value, usedSensitive }: ResolvedTemplates): RawTemplates {
  const checked = checkedTemplates(value);
  return 'failure' in checked && usedSensitive ? { failure: REDACTED } : { ...checked, isSensitive: usedSensitive };
}

type ResolvedTemplates = Extract<TemplateResolution, { readonly state: 'resolved' }>;
type FailedTemplates = Extract<TemplateResolution, { readonly state: 'failed' }>;

const REDACTED = 'the templates cannot be used: the reason is redacted, because they read Secrets';

/** Why templates fail. Once a Secret was read, the reason may quote it: a text of `fail`, or a name that was looked up. */
function failureText({ error, usedSensitive }: FailedTemplates): string {
  return usedSensitive ? REDACTED : error.message;
}

/** Checks what the schema of the kind checks for templates that are not raw. */
function checkedTemplates(value: JsonValue): RawTemplates {
  if (!Array.isArray(value)) {
    return { failure: 'expected a list of object templates' };
  }
  if (value.length > MAX_OBJECT_TEMPLATES) {
    return { failure: `expected at most ${MAX_OBJECT_TEMPLATES} object templates, got ${value.length}` };
  }
  const templates: JsonObject[] = [];
  for (const [index, template] of value.entries()) {
    const problem = templateProblem(template);
    if (problem !== undefined || !isJsonObject(template)) {
      return { failure: `object-templates-raw: [${index}]${problem ?? ''}` };
    }
    templates.push(template);
  }
  return { templates };
}

function templateProblem(template: JsonValue): string | undefined {
  if (!isJsonObject(template)) {
    return ': expected an object';
  }
  const type = textOf(own(template, 'complianceType')).toLowerCase();
  if (!COMPLIANCE_TYPES.has(type)) {
    return `.complianceType: expected musthave, mustonlyhave or mustnothave, got ${JSON.stringify(type)}`;
  }
  const metadataType = own(template, 'metadataComplianceType');
  if (metadataType !== undefined && !['musthave', 'mustonlyhave'].includes(textOf(metadataType).toLowerCase())) {
    return '.metadataComplianceType: expected musthave or mustonlyhave';
  }
  const choices = { recreateOption: ['None', 'IfRequired', 'Always'], recordDiff: ['Log', 'InStatus', 'None'] };
  for (const [field, values] of Object.entries(choices)) {
    const choice = own(template, field);
    if (choice !== undefined && !values.includes(textOf(choice))) {
      return `.${field}: expected one of ${values.join(', ')}`;
    }
  }
  const listKeys = own(template, 'listKeys') ?? [];
  if (!Array.isArray(listKeys) || !listKeys.every(isListKey)) {
    return '.listKeys: expected a list of objects with path and key';
  }
  return isJsonObject(own(template, 'objectDefinition')) ? undefined : '.objectDefinition: expected an object';
}

function isListKey(value: JsonValue): boolean {
  return isJsonObject(value) && textOf(own(value, 'path')) !== '' && textOf(own(value, 'key')) !== '';
}
