import type { LoadOutcome } from '../../evaluation/index.ts';

/** Why a policy cannot be audited that cannot be loaded, and what to do where policy servers may load it. */
export function notLoadedText({ reason, message }: Extract<LoadOutcome, { readonly ok: false }>): string {
  const hasOwnCredentials = reason === 'Unauthorized' || reason === 'AccessDenied';
  return `${reason}: ${message}${hasOwnCredentials ? OWN_CREDENTIALS : ''}`;
}

const OWN_CREDENTIALS =
  '. The auditor has no credentials of PolicyServers: name a Secret for its own by the value auditor.imagePullSecret';
