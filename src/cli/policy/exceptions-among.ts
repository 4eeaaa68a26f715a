// PolicyExceptions among objects of files. They need no acceptance: whoever runs a command on files answers for these.
import type { JsonObject } from '../../engine/index.ts';
import {
  exceptionTerms,
  type ExceptionTerms,
  POLICY_EXCEPTIONS,
  PORTCULLIS_GROUP,
  type PolicyException,
} from '../../resources/index.ts';
import { ObjectSchema } from '../../resources/validation/index.ts';
import { own, textOf } from '../../values/index.ts';

/** Whether a manifest is an exception, in any version. */
export function isException(manifest: JsonObject): boolean {
  const apiVersion = textOf(own(manifest, 'apiVersion'));
  return apiVersion.startsWith(`${PORTCULLIS_GROUP}/`) && own(manifest, 'kind') === POLICY_EXCEPTIONS.kind;
}

/** The exceptions among objects of files, but for those that no cluster would store. */
export function exceptionsAmong(objects: readonly JsonObject[]): readonly ExceptionTerms[] {
  const found = objects.filter(isException);
  if (found.length === 0) {
    return [];
  }
  const schema = new ObjectSchema(POLICY_EXCEPTIONS.schema());
  return found.flatMap((object) => {
    const copy = structuredClone(object) as Parameters<ObjectSchema['applyDefaults']>[0];
    schema.applyDefaults(copy);
    const exception = copy as unknown as PolicyException;
    return schema.validate(exception).length === 0 ? [exceptionTerms(exception)] : [];
  });
}
