import { labelsText, MANAGED_BY } from '../../resources/index.ts';

/** Of each report that the auditor writes, which touches no others, and of its Lease. */
export const REPORT_LABELS = { ...MANAGED_BY, 'app.kubernetes.io/component': 'auditor' } as const;
/** Selects reports of the auditor, and Leases of auditors. */
export const REPORT_SELECTOR: string = labelsText(REPORT_LABELS);
