import type { JsonObject } from '../values/json-text.ts';
import type { ParamRef } from './policy-spec.ts';
import type { ParamSource, ParamKind } from './sources.ts';

/** The parameters of a policy cannot be determined. The message is that of API servers. */
class ConfigurationError extends Error {}

/** There are no parameters, and that denies the request. */
export class ParametersMissing extends ConfigurationError {
  /** Whether they would be in the namespace of the request. */
  readonly isOfNamespace: boolean;

  constructor(isOfNamespace: boolean) {
    super('no params found for policy binding with `Deny` parameterNotFoundAction');
    this.isOfNamespace = isOfNamespace;
  }
}

/** @throws {@link ConfigurationError} when the API server does not serve the kind */
export function checkServed(paramKind: ParamKind | undefined, source: ParamSource): void {
  if (paramKind !== undefined && !source.isServed(paramKind)) {
    const { apiVersion, kind } = paramKind;
    const text = `${apiVersion.includes('/') ? apiVersion : `/${apiVersion}`}, Kind=${kind}`;
    throw new ConfigurationError(`failed to find resource referenced by paramKind: '${text}'`);
  }
}

/**
 * The parameters that a policy is evaluated with, one after the other; `[undefined]` without a paramKind, and empty
 * when no parameter exists and that is allowed. Throws {@link ConfigurationError}, and errors of the source.
 */
export function collectParams(
  paramKind: ParamKind | undefined,
  paramRef: ParamRef | undefined,
  requestNamespace: string,
  source: ParamSource,
): readonly (JsonObject | undefined)[] {
  if (paramKind === undefined || paramRef === undefined) {
    return [undefined];
  }
  const namespace = namespaceOf(paramKind, paramRef, requestNamespace, source);
  const found = paramRef.name === undefined ? listed(paramKind, paramRef, namespace, source) : [];
  if (paramRef.name !== undefined) {
    const param = source.get(paramKind, paramRef.name, namespace);
    found.push(...(param === undefined ? [] : [param]));
  }
  if (found.length === 0 && paramRef.parameterNotFoundAction === 'Deny') {
    throw new ParametersMissing(namespace !== undefined && namespace === requestNamespace);
  }
  // Parameters of builtin kinds come without apiVersion and kind.
  return found.map((param) => ({ ...param, apiVersion: paramKind.apiVersion, kind: paramKind.kind }));
}

function listed(
  paramKind: ParamKind,
  { selector }: ParamRef,
  namespace: string | undefined,
  source: ParamSource,
): JsonObject[] {
  return selector === undefined ? [] : [...source.list(paramKind, namespace, selector)];
}

function namespaceOf(
  paramKind: ParamKind,
  paramRef: ParamRef,
  requestNamespace: string,
  source: ParamSource,
): string | undefined {
  if (!source.isNamespaced(paramKind)) {
    if (paramRef.namespace !== undefined) {
      throw new ConfigurationError('paramRef.namespace must not be provided for a cluster-scoped `paramKind`');
    }
    return undefined;
  }
  const namespace = paramRef.namespace ?? requestNamespace;
  if (namespace === '') {
    throw new ConfigurationError(
      'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
    );
  }
  return namespace;
}
