// Flags of install, uninstall and doctor.
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { addConnectionFlags } from '../cluster/cluster-flags.ts';
import { namespaceName } from '../namespace-names.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { parseJson } from '../../values/index.ts';

export interface InstallationFlags {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** The namespace of Portcullis. */
  readonly namespace: string;
}

/** Adds the flags for the cluster and the namespace of Portcullis. */
export function addInstallationFlags(command: Command): Command {
  return addConnectionFlags(command).option(
    '-n, --namespace <name>',
    'namespace of Portcullis itself',
    namespaceName,
    PRODUCT_NAMESPACE,
  );
}

/** The version of this program, and of images that it installs. */
export function productVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (parseJson(text) as { readonly version: string }).version;
}
