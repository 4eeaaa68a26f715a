// Whether API servers were told of CAs: what our webhook configurations say.
import { isJsonObject } from '../../resources/index.ts';
import type { WebhookConfiguration } from '../webhooks/webhook-object.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';

/**
 * Whether every webhook that trusts one of some CAs trusts all of them. Those that trust none of them are for servers
 * whose certificates somebody else keeps.
 */
export function areTold(
  configurations: readonly WebhookConfiguration[],
): (authorities: readonly ParsedCertificate[]) => boolean {
  const bundles = bundlesIn(configurations);
  return (authorities) =>
    bundles.every((bundle) => {
      const told = new Set(authoritiesIn(bundle).map(({ id }) => id));
      const known = authorities.filter(({ id }) => told.has(id));
      return known.length === 0 || known.length === authorities.length;
    });
}

/** All CAs that some webhook trusts; one may be there more than once. */
export function toldAuthorities(configurations: readonly WebhookConfiguration[]): readonly ParsedCertificate[] {
  return bundlesIn(configurations).flatMap((bundle) => authoritiesIn(bundle));
}

function authoritiesIn(bundle: string): readonly ParsedCertificate[] {
  return parseCertificates(Buffer.from(bundle, 'base64').toString());
}

function bundlesIn(configurations: readonly WebhookConfiguration[]): readonly string[] {
  return [...new Set(configurations.flatMap(({ webhooks = [] }) => webhooks.flatMap((webhook) => bundleIn(webhook))))];
}

function bundleIn(webhook: object): readonly string[] {
  const config = 'clientConfig' in webhook ? webhook.clientConfig : undefined;
  const bundle = isJsonObject(config) ? config['caBundle'] : undefined;
  return typeof bundle === 'string' ? [bundle] : [];
}
