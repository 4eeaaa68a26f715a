// What is kept of a recorded request: what policies decide by, and no secrets as far as kinds of Kubernetes say where these are.
import { exactJson, isJsonObject, objectIn, own, parseExactJson } from '../../values/index.ts';

/** A copy of the whole object as it was applied. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
/** Its objects are credentials. */
const AUTHENTICATION = 'authentication.k8s.io';

/** The review without secrets; undefined for one that is not recorded. Never throws. */
export function redactedReview(body: Uint8Array): Buffer | undefined {
  try {
    const review = parseExactJson(new TextDecoder('utf-8', { fatal: true }).decode(body));
    const request = isJsonObject(review) ? own(review, 'request') : undefined;
    if (!isJsonObject(request) || objectIn(request, 'kind')['group'] === AUTHENTICATION) {
      return undefined;
    }
    const { kind, group } = objectIn(request, 'kind');
    const isSecret = group === '' && kind === 'Secret';
    const { object, oldObject, ...facts } = request;
    const kept = {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        ...facts,
        ...(object === undefined ? {} : { object: redacted(object, isSecret) }),
        ...(oldObject === undefined ? {} : { oldObject: redacted(oldObject, isSecret) }),
      },
    };
    return Buffer.from(exactJson(kept));
  } catch {
    // No JSON, or nested too deep.
    return undefined;
  }
}

/** An object with its keys, and without the values of Secrets, environment variables, and copies of itself. */
function redacted(object: unknown, isSecret: boolean): unknown {
  if (!isJsonObject(object)) {
    return object;
  }
  const { data, stringData, ...rest } = object;
  return isSecret
    ? {
        ...(withoutValues(rest) as object),
        ...(data === undefined ? {} : { data: emptied(data) }),
        ...(stringData === undefined ? {} : { stringData: emptied(stringData) }),
      }
    : withoutValues(object);
}

function emptied(values: unknown): unknown {
  return isJsonObject(values) ? Object.fromEntries(Object.keys(values).map((key) => [key, ''])) : null;
}

/** In pods, in templates of any depth, and in kinds of others that have containers. */
function withoutValues(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(withoutValues);
  }
  if (!isJsonObject(value)) {
    return value;
  }
  const members = Object.entries(value)
    .filter(([key]) => key !== LAST_APPLIED)
    .map(([key, member]): readonly [string, unknown] => [
      key,
      key === 'env' && Array.isArray(member) ? member.map(withoutValue) : withoutValues(member),
    ]);
  return Object.fromEntries(members);
}

/** Of an environment variable. References to Secrets stay. */
function withoutValue(variable: unknown): unknown {
  return isJsonObject(variable) && typeof variable['value'] === 'string' ? { ...variable, value: '' } : variable;
}
