// Fields of a PolicyServer that are not supported. They are never ignored silently: the status names them.
import type { PolicyServerObject } from '../../resources/index.ts';
import { LOG_FORMAT, LOG_FORMATS, reservedVariables } from './pod-environment.ts';
import { isKubewardenImage } from './running-image.ts';

type Spec = PolicyServerObject['spec'];

/** A field that is not used, or used differently. */
export interface UnusedField {
  readonly field: string;
  /** The effect; continues a sentence that starts with the field. */
  readonly message: string;
}

/**
 * Fields of a spec that are not used as written.
 * @param ownImage the image that replaces Kubewarden's policy server
 */
export function unusedFields({ image, env = [] }: Spec, ownImage: string): readonly UnusedField[] {
  const found: UnusedField[] = [];
  if (isKubewardenImage(image)) {
    found.push({ field: 'spec.image', message: `names Kubewarden's own policy server: ${ownImage} runs instead` });
  }
  for (const name of reservedVariables(env)) {
    found.push({ field: 'spec.env', message: `sets ${name}, which the controller overrides` });
  }
  for (const { name, value } of env) {
    if (name === LOG_FORMAT && value !== undefined && !LOG_FORMATS.includes(value)) {
      const message = `sets ${name} to ${JSON.stringify(value)}: expected ${LOG_FORMATS.join(' or ')}; json is used`;
      found.push({ field: 'spec.env', message });
    }
  }
  return found;
}
