// What a PolicyServer asks for that cannot be done yet. Never dropped in silence: the status says it.
import type { PolicyServer } from '../../resources/index.ts';
import { LOG_FORMAT, LOG_FORMATS, reservedVariables } from './pod-environment.ts';
import { isKubewardenImage } from './running-image.ts';

type Spec = PolicyServer['spec'];

/**
 * Why the processes of a PolicyServer must not be started, or changed, as it says: modules would run that it wants kept out.
 * Undefined when they may.
 */
export function whyNotRun({ verificationConfig }: Spec): string | undefined {
  return isNamed(verificationConfig)
    ? 'signatures of modules cannot be verified yet: nothing is made or changed for this PolicyServer, so that no module runs ' +
        'without. Remove spec.verificationConfig to run modules whose signatures nobody verifies'
    : undefined;
}

/** A field that is not used, or not as it says. */
export interface UnusedField {
  readonly field: string;
  /** What is done instead. Reads on from the name of the field. */
  readonly message: string;
}

/**
 * What is not done as a PolicyServer says.
 * @param ownImage what runs in place of Kubewarden's own policy server
 */
export function unusedFields(
  { image, env = [], imagePullSecret, sigstoreTrustConfig }: Spec,
  ownImage: string,
): readonly UnusedField[] {
  const found: UnusedField[] = [];
  if (isKubewardenImage(image)) {
    found.push({ field: 'spec.image', message: `names Kubewarden's own policy server: ${ownImage} runs in its place` });
  }
  if (isNamed(imagePullSecret)) {
    const message = 'is used for the image of the pods only: modules are fetched without credentials';
    found.push({ field: 'spec.imagePullSecret', message });
  }
  if (isNamed(sigstoreTrustConfig)) {
    found.push({ field: 'spec.sigstoreTrustConfig', message: 'is not used: signatures cannot be verified yet' });
  }
  for (const name of reservedVariables(env)) {
    found.push({ field: 'spec.env', message: `sets ${name}, which the controller sets itself: that value counts` });
  }
  for (const { name, value } of env) {
    if (name === LOG_FORMAT && value !== undefined && !LOG_FORMATS.includes(value)) {
      const message = `sets ${name} to ${JSON.stringify(value)}: expected ${LOG_FORMATS.join(' or ')}; json is used`;
      found.push({ field: 'spec.env', message });
    }
  }
  return found;
}

function isNamed(name: string | undefined): name is string {
  return name !== undefined && name !== '';
}
