// Flags of install, uninstall and doctor.
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { dnsLabelProblems } from '../../names/index.ts';
import { addConnectionFlags } from '../cluster/cluster-flags.ts';
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

function namespaceName(text: string): string {
  const [problem] = dnsLabelProblems(text);
  if (problem !== undefined) {
    throw new InvalidArgumentError(`expected the name of a namespace: ${problem}`);
  }
  return text;
}

/** The version of this program, and of images that it installs. */
export function productVersion(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (parseJson(text) as { readonly version: string }).version;
}
