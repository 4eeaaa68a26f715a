import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder `examples/` of the package. */
export const EXAMPLES = fileURLToPath(new URL('../../../examples/', import.meta.url));

/** Policies of governance that wait for each other. */
export const GOVERNANCE_EXAMPLE = join(EXAMPLES, 'governance', 'kafka.yaml');
