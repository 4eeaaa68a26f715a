// Tries mutations on a sample of each kind, for mistakes that expressions do not show.
import { parseCelJson } from '../../../cel/index.ts';
import type { CelValue } from '../../../cel/index.ts';
import { checkTypes, MergeError } from '../../../resources/structured-merge/index.ts';
import { isJsonObject } from '../../values/json-text.ts';
import type { CompiledMutation, CompiledPolicy } from '../compiled-policy.ts';
import type { Activation } from '../expression-run.ts';
import { mutate, plainJson } from '../mutate.ts';
import { fieldOfPatch } from '../read-policy.ts';
import type { LintFinding } from './lint-finding.ts';
import type { MatchedSchema } from './matched-schemas.ts';
import { sampleObject } from './sample-object.ts';

/** Kinds on which mutations are tried: some milliseconds each, besides the expressions. */
const MAX_KINDS = 3;
/**
 * Failures that depend on the request: of the expression itself, and of an operation on what the sample, or what an earlier
 * mutation leaves of it, does not have.
 */
const OF_SAMPLE = /^expression '|cost budget|missing|Unable to access|index|unable to/su;

/** Warnings about mutations that fail on a sample. @param judged fields of mutations with other findings @param root prefix of fields */
export function mutationTrial(
  policy: CompiledPolicy,
  kinds: readonly MatchedSchema[],
  judged: ReadonlySet<string>,
  root: string,
): readonly LintFinding[] {
  const { spec, usesAuthorizer, mutations } = policy;
  if (spec.paramKind !== undefined || usesAuthorizer) {
    return [];
  }
  return mutations.flatMap((mutation, index) => {
    const field = `${root}mutations[${index}].${fieldOfPatch(mutation.patchType)}.expression`;
    for (const kind of judged.has(field) ? [] : kinds.slice(0, MAX_KINDS)) {
      const failure = failureOf(policy, mutation, kind);
      if (failure !== undefined) {
        const message = `tried on a sample, the mutation fails for a ${kind.kind ?? ''}: ${failure}`;
        return [{ code: 'mutation', field, message } as const];
      }
    }
    return [];
  });
}

function failureOf(
  policy: CompiledPolicy,
  mutation: CompiledMutation,
  { schema, type }: MatchedSchema,
): string | undefined {
  if (schema === undefined) {
    return undefined;
  }
  const alone = { ...policy, matchConditions: [], mutations: [mutation] };
  const { object, errors } = mutate(alone, activationOf(schema));
  const [error] = errors;
  if (error !== undefined) {
    return OF_SAMPLE.test(error) ? undefined : error;
  }
  const changed = plainJson(object);
  try {
    checkTypes(isJsonObject(changed) ? changed : {}, type, true);
    return undefined;
  } catch (problem) {
    if (problem instanceof MergeError) {
      return `API servers cannot decode the object: ${problem.message.replace(/, got [^]*/u, '')}`;
    }
    throw problem;
  }
}

/** The creation of a sample in a namespace. */
function activationOf({ node, group, version, kind, resource }: NonNullable<MatchedSchema['schema']>): Activation {
  const sample = sampleObject(node, group === '' ? version : `${group}/${version}`, kind);
  const request = {
    uid: 'sample',
    kind: { group, version, kind },
    resource: { group, version, resource },
    requestKind: { group, version, kind },
    requestResource: { group, version, resource },
    operation: 'CREATE',
    name: 'sample',
    namespace: 'sample',
    userInfo: { username: 'sample', groups: ['sample'] },
    dryRun: false,
    object: sample,
    oldObject: null,
    options: null,
  };
  const namespace = { metadata: { name: 'sample', labels: { sample: 'sample' } }, spec: {}, status: {} };
  const celOf = (value: unknown): CelValue => parseCelJson(JSON.stringify(value));
  return {
    object: celOf(sample),
    oldObject: null,
    request: celOf(request),
    namespaceObject: celOf(namespace),
    params: null,
  };
}
