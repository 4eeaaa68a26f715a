import { MAX_NAMESPACE_KEYS, MAX_OVERRIDABLE_KEYS, MAX_SETTINGS_EXPRESSION } from '../../resources/index.ts';
import type { FieldReader } from '../values/field-reader.ts';
import type {
  NamespaceKeys,
  ParametersDefinition,
  ParametersResource,
  ParametersSource,
} from './parameters-definition.ts';

const NO_SOURCE: ParametersSource = { namespace: { annotations: [], labels: [] } };

/** Reads `parameters` of a policy or a member of a group; undefined when there are none. */
export function readParameters(owner: FieldReader): ParametersDefinition | undefined {
  const fields = owner.inside('parameters');
  if (fields === undefined) {
    return undefined;
  }
  fields.knownKeys(['from', 'notFound', 'onInvalid', 'onRollout', 'overridable', 'settingsExpression'], {
    owner: 'parameters',
  });
  return {
    from: readSource(fields),
    notFound: fields.oneOf('notFound', ['Deny', 'Allow', 'UseDefaults']) ?? 'Deny',
    onInvalid: fields.oneOf('onInvalid', ['Deny', 'KeepLast']) ?? 'Deny',
    onRollout: fields.oneOf('onRollout', ['Fail', 'Warn']) ?? 'Fail',
    overridable: readOverridable(fields),
    settingsExpression: readExpression(fields),
  };
}

function readSource(parameters: FieldReader): ParametersSource {
  const from = parameters.inside('from');
  if (from === undefined) {
    if (!parameters.has('from')) {
      parameters.missing('from');
    }
    return NO_SOURCE;
  }
  from.knownKeys(['resource', 'namespace'], { owner: 'the source of parameters' });
  const resource = from.inside('resource');
  const namespace = from.inside('namespace');
  if (from.has('resource') === from.has('namespace')) {
    const got = from.has('resource') ? 'both' : 'neither';
    from.faultHere(`expected either "resource" or "namespace", got ${got}`);
  }
  if (resource !== undefined) {
    return { resource: readResource(resource) };
  }
  return namespace === undefined ? NO_SOURCE : { namespace: readNamespaceKeys(namespace) };
}

function readResource(fields: FieldReader): ParametersResource {
  fields.knownKeys(['apiVersion', 'kind', 'name', 'namespace'], { owner: 'the resource of parameters' });
  const namespace = fields.someText('namespace');
  return {
    apiVersion: fields.requiredText('apiVersion'),
    kind: fields.requiredText('kind'),
    name: fields.requiredText('name'),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function readNamespaceKeys(fields: FieldReader): NamespaceKeys {
  fields.knownKeys(['annotations', 'labels'], { owner: 'the namespace of parameters' });
  const keys = { annotations: readKeys(fields, 'annotations'), labels: readKeys(fields, 'labels') };
  if (!fields.has('annotations') && !fields.has('labels')) {
    fields.faultHere('expected the keys of annotations or labels, got none');
  }
  return keys;
}

function readKeys(fields: FieldReader, key: 'annotations' | 'labels'): readonly string[] {
  const keys = fields.texts(key);
  if (fields.has(key) && (keys.length === 0 || keys.length > MAX_NAMESPACE_KEYS)) {
    fields.fault(key, `expected 1 to ${MAX_NAMESPACE_KEYS} keys, got ${keys.length}`);
  }
  return keys;
}

function readOverridable(fields: FieldReader): readonly string[] {
  if (!fields.has('overridable')) {
    fields.missing('overridable');
    return [];
  }
  const keys = fields.texts('overridable');
  if (keys.length === 0 || keys.length > MAX_OVERRIDABLE_KEYS) {
    fields.fault('overridable', `expected 1 to ${MAX_OVERRIDABLE_KEYS} keys of settings, got ${keys.length}`);
  }
  return keys;
}

function readExpression(fields: FieldReader): string {
  const expression = fields.requiredText('settingsExpression');
  if (expression.length > MAX_SETTINGS_EXPRESSION) {
    const limit = `expected at most ${MAX_SETTINGS_EXPRESSION} characters, got ${expression.length}`;
    fields.fault('settingsExpression', limit);
  }
  return expression;
}
