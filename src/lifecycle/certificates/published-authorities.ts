// CAs that our webhook configurations make API servers trust.
import { isJsonObject } from '../../resources/index.ts';
import type { WebhookConfiguration } from '../webhooks/webhook-object.ts';
import { type ParsedCertificate, parseCertificates } from './parsed-certificate.ts';

/**
 * Whether every webhook that trusts one of the given CAs trusts all of them. A webhook that trusts none of them calls a server
 * with certificates of another issuer.
 */
export function arePublished(
  configurations: readonly WebhookConfiguration[],
): (authorities: readonly ParsedCertificate[]) => boolean {
  const bundles = bundlesIn(configurations);
  return (authorities) =>
    bundles.every((bundle) => {
      const trusted = new Set(authoritiesIn(bundle).map(({ id }) => id));
      const count = authorities.filter(({ id }) => trusted.has(id)).length;
      return count === 0 || count === authorities.length;
    });
}

/** All CAs in webhook configurations, with duplicates. */
export function publishedAuthorities(configurations: readonly WebhookConfiguration[]): readonly ParsedCertificate[] {
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
