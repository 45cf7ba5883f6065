// Service code `sagemaker`; codes are the same in every region, which
// rows exist differs. Source: gruntwork-io/terraform-aws-utilities@55f0c2d modules/request-quota-increase/variables.tf
// (us-east-1, 2026-01-14), cross-checked with three regions. Retrieved 2026-11-20.
// Only codes from that list are included; a quota of a missing type is looked up by name at run time.

/** The columns of the table: one code for each usage. */
const USAGES = ['training', 'spot', 'warm-pool', 'processing'] as const;
/** Usage kind of a SageMaker instance quota; each kind has a separate quota per type. */
export type QuotaUsage = (typeof USAGES)[number];

const ROWS: Readonly<Record<string, readonly (string | undefined)[]>> = {
  'ml.c4.2xlarge': ['L-C5B4EE09', 'L-978CD7EC', 'L-72EF9D60'],
  'ml.c4.4xlarge': ['L-505634D0', 'L-C087612A', 'L-FBB7E9CB'],
  'ml.c4.8xlarge': ['L-6BE85179', 'L-C5B2C408', 'L-8B308035'],
  'ml.c4.xlarge': ['L-85D4BAF3', 'L-9BA5373F', 'L-1DA286AA'],
  'ml.c5.18xlarge': ['L-81482A8C', 'L-239B242B', 'L-C8044861', 'L-2D8CD70A'],
  'ml.c5.2xlarge': ['L-49679826', 'L-4581C083', 'L-0D58D77C', 'L-C1EBA9C5'],
  'ml.c5.4xlarge': ['L-E7898792', 'L-36C5FA8E', 'L-7BDD9EA3', 'L-EFB2F063'],
  'ml.c5.9xlarge': ['L-2BE095E2', 'L-A2512F8F', 'L-ABFCF5A2', 'L-945D1F1D'],
  'ml.c5.xlarge': ['L-E2BB44FE', 'L-6FA0D387', 'L-F978BE20', 'L-486519E6'],
  'ml.c5n.18xlarge': ['L-A1E21094', 'L-266C4F52', 'L-566A905C'],
  'ml.c5n.2xlarge': ['L-D04B88E2', 'L-C1E6B202', 'L-2952557B'],
  'ml.c5n.4xlarge': ['L-E215EF33', 'L-37059D02', 'L-4A423436'],
  'ml.c5n.9xlarge': ['L-D0327E29', 'L-D144443B', 'L-FDD19E2A'],
  'ml.c5n.xlarge': ['L-04CD765C', 'L-DD508305', 'L-8A72B806'],
  'ml.c6i.12xlarge': ['L-81AF96F3', 'L-DD42D93D', 'L-51467CBD'],
  'ml.c6i.16xlarge': ['L-090C5671', 'L-0C0D9F82', 'L-5D454ED8'],
  'ml.c6i.24xlarge': ['L-DE22CE7F', 'L-1B7024B2', 'L-CF4F44AD'],
  'ml.c6i.2xlarge': ['L-536D2DD2', 'L-8BB74069', 'L-C1971434'],
  'ml.c6i.32xlarge': ['L-D8FA228C', 'L-B9D177E1', 'L-7B64C2AB'],
  'ml.c6i.4xlarge': ['L-4A20E33E', 'L-017831D5', 'L-2B1E88AF'],
  'ml.c6i.8xlarge': ['L-845DE61C', 'L-6DA79B36', 'L-F361CE98'],
  'ml.c6i.xlarge': ['L-D526E050', 'L-6074B0D4', 'L-75B2C685'],
  'ml.c7i.12xlarge': ['L-B6A274A9', 'L-B83BF0BE', 'L-395315DA'],
  'ml.c7i.16xlarge': ['L-4EE1482A', 'L-80BD5FD2', 'L-F9989D2B'],
  'ml.c7i.24xlarge': ['L-4AEBC16B', 'L-9FE5CC2D', 'L-D25FCBA1'],
  'ml.c7i.2xlarge': ['L-83A50567', 'L-320DF9E1', 'L-3A1C8CE1'],
  'ml.c7i.48xlarge': ['L-01589929', 'L-76243C5D', 'L-62BEAF82'],
  'ml.c7i.4xlarge': ['L-1EC4D7FD', 'L-608EFB1F', 'L-D463F25C'],
  'ml.c7i.8xlarge': ['L-73081A3A', 'L-9849A15E', 'L-57A53C2D'],
  'ml.c7i.large': ['L-3FD3F6D0', 'L-6C44F58D', 'L-570B0415'],
  'ml.c7i.xlarge': ['L-194981EA', 'L-9723DD27', 'L-25B13CE9'],
  'ml.g4dn.12xlarge': ['L-7BD2C9FA', 'L-199558F0', 'L-CB4A3655', 'L-6C7C4F4E'],
  'ml.g4dn.16xlarge': ['L-57998C77', 'L-AD4C1352', 'L-C960C80D', 'L-47F095C9'],
  'ml.g4dn.2xlarge': ['L-C2495BC4', 'L-0496610F', 'L-C35F807B', 'L-41C11899'],
  'ml.g4dn.4xlarge': ['L-2908B1E9', 'L-246C5638', 'L-3408A20D', 'L-B1C4D018'],
  'ml.g4dn.8xlarge': ['L-3118B7E1', 'L-15F329FB', 'L-769E114F', 'L-9C72BEE2'],
  'ml.g4dn.xlarge': ['L-3F53BF0F', 'L-944F78BB', 'L-955074FD', 'L-2F1EB012'],
  'ml.g5.12xlarge': ['L-C6383286', 'L-03E19172', 'L-29508C65', 'L-B013C051'],
  'ml.g5.16xlarge': ['L-9FAC65F7', 'L-E3DCB664', 'L-F6B8A3A3', 'L-AC014CFB'],
  'ml.g5.24xlarge': ['L-ED7BD217', 'L-8345B953', 'L-6F46EF71', 'L-BC6B3288'],
  'ml.g5.2xlarge': ['L-2D6DEB3C', 'L-CAEE7DB7', 'L-822C5A39', 'L-23412DF7'],
  'ml.g5.48xlarge': ['L-6BC98A55', 'L-C87FF004', 'L-7D217E5D', 'L-339123BF'],
  'ml.g5.4xlarge': ['L-FE869B40', 'L-DB4D51CF', 'L-88E48241', 'L-0A6E4205'],
  'ml.g5.8xlarge': ['L-43F5FC95', 'L-DD18D5D6', 'L-40E8018C', 'L-B9080C32'],
  'ml.g5.xlarge': ['L-B6D80D9C', 'L-DE07CBDF', 'L-8E6F4665', 'L-BE792A7A'],
  'ml.g6.12xlarge': ['L-50B5B169', 'L-2C06E55A', 'L-954CE822'],
  'ml.g6.16xlarge': ['L-C8B8462D', 'L-8D196E75', 'L-73EC964F'],
  'ml.g6.24xlarge': ['L-B0E221DE', 'L-148FBB89', 'L-1DDB8D50'],
  'ml.g6.2xlarge': ['L-A1025C0C', 'L-BC684567', 'L-8F92321F'],
  'ml.g6.48xlarge': ['L-8CCF67BD', 'L-9C33052B', 'L-FD73C65F'],
  'ml.g6.4xlarge': ['L-07B51BA0', 'L-03304C28', 'L-BA5B2FC5'],
  'ml.g6.8xlarge': ['L-FB830EC3', 'L-CDC3B509', 'L-DBF210E3'],
  'ml.g6.xlarge': ['L-56AE9D73', 'L-A886A53A', 'L-99881E10'],
  'ml.g6e.12xlarge': ['L-F70A2467', 'L-C1031CE4', 'L-F88734E1'],
  'ml.g6e.16xlarge': ['L-68515813', 'L-5E942007', 'L-C1AEC017'],
  'ml.g6e.24xlarge': ['L-3AE4911A', 'L-CE130130', 'L-2C0E8383'],
  'ml.g6e.2xlarge': ['L-D1AFBF6F', 'L-29512C0F', 'L-2E2B5B49'],
  'ml.g6e.48xlarge': ['L-0DA2E7B0', 'L-8497E1A4', 'L-2AD5EFDD'],
  'ml.g6e.4xlarge': ['L-945D83D8', 'L-5E2EB366', 'L-B257AB01'],
  'ml.g6e.8xlarge': ['L-812CA1D8', 'L-2E243138', 'L-72017957'],
  'ml.g6e.xlarge': ['L-1E3225F6', 'L-1DE24427', 'L-BEAEADC8'],
  'ml.m4.10xlarge': ['L-D35E48B2', 'L-C17B05C4', 'L-1BF9151C'],
  'ml.m4.16xlarge': ['L-D7CE983F', 'L-A50827DD', 'L-F4F08D88'],
  'ml.m4.2xlarge': ['L-D589112D', 'L-FE159C34', 'L-E312D77E'],
  'ml.m4.4xlarge': ['L-E60A61DF', 'L-D7D166A0', 'L-CF81ED81'],
  'ml.m4.xlarge': ['L-A373146E', 'L-2ECAA15F', 'L-AFEEB9EB'],
  'ml.m5.12xlarge': ['L-6F6C8949', 'L-29B03627', 'L-34594662', 'L-BC1C7D38'],
  'ml.m5.24xlarge': ['L-56C564CA', 'L-D0EA3DC8', 'L-B21D8B36', 'L-E2E903C6'],
  'ml.m5.2xlarge': ['L-AD0A282D', 'L-4A823FAB', 'L-1686EE8B', 'L-1D84B9D2'],
  'ml.m5.4xlarge': ['L-AFB011B4', 'L-2A6ACFF7', 'L-03767DF9', 'L-379E85A3'],
  'ml.m5.large': ['L-611FA074', 'L-29688C85', 'L-2DD73636', 'L-8541302D'],
  'ml.m5.xlarge': ['L-CCE2AFA6', 'L-4CEE6BA6', 'L-0BEF44E8', 'L-0307F515'],
  'ml.m6i.12xlarge': ['L-8716E6AE', 'L-EF089D40', 'L-4FC79063', 'L-46EB709C'],
  'ml.m6i.16xlarge': ['L-7412F8CF', 'L-614CBE09', 'L-8C9D5748', 'L-B0A4992C'],
  'ml.m6i.24xlarge': ['L-9778E614', 'L-24B0ADC0', 'L-2C080D31', 'L-9639CC81'],
  'ml.m6i.2xlarge': ['L-AE3447AD', 'L-39DC8B41', 'L-D1BB9472', 'L-69C6935E'],
  'ml.m6i.32xlarge': ['L-6F01766F', 'L-843BE5AB', 'L-699A2417', 'L-E863DCD3'],
  'ml.m6i.4xlarge': ['L-AE93C70E', 'L-59C3957D', 'L-F1B1085A', 'L-5064185C'],
  'ml.m6i.8xlarge': ['L-964887D9', 'L-7B628106', 'L-52A56414', 'L-A62BA7D5'],
  'ml.m6i.large': ['L-514B50A3', 'L-7E503C5F', 'L-9D578B5E', 'L-D9F69758'],
  'ml.m6i.xlarge': ['L-3A218EBD', 'L-3597CD5B', 'L-CD3B6B80', 'L-4530EDEE'],
  'ml.m7i.12xlarge': ['L-203824E2', 'L-402598A2', 'L-DB00E0E3', 'L-67BEA0AE'],
  'ml.m7i.16xlarge': ['L-23FC2F6E', 'L-61116077', 'L-74C31E8C', 'L-21FC2F36'],
  'ml.m7i.24xlarge': ['L-835D2208', 'L-FC6B95EF', 'L-76AF5271', 'L-41D07CEF'],
  'ml.m7i.2xlarge': ['L-940A662A', 'L-0AC766BA', 'L-E3970643', 'L-71EA14AB'],
  'ml.m7i.48xlarge': ['L-CB4B91F3', 'L-89F2FD35', 'L-6C6CBBDE', 'L-08F1F3D8'],
  'ml.m7i.4xlarge': ['L-06106111', 'L-85573624', 'L-6CE24819', 'L-079EEF64'],
  'ml.m7i.8xlarge': ['L-80324B66', 'L-34866D05', 'L-EB03CD8A', 'L-EFCA02A2'],
  'ml.m7i.large': ['L-C5747110', 'L-CDFDF9FD', 'L-86CB710A', 'L-659C9942'],
  'ml.m7i.xlarge': ['L-E84ADEB3', 'L-0C545830', 'L-6FCDFC95', 'L-7E675D8C'],
  'ml.p3.16xlarge': ['L-A99E0304', 'L-D58A90BB', 'L-763CF8E3'],
  'ml.p3.2xlarge': ['L-D438008E', 'L-2D4C6493', 'L-E3709F6E'],
  'ml.p3.8xlarge': ['L-558F1246', 'L-0201B959', 'L-5CA5BEE6'],
  'ml.p3dn.24xlarge': ['L-8DCA2E97', 'L-477D3300', 'L-D27958C4'],
  'ml.p4d.24xlarge': ['L-09B4A649', 'L-09D56C4F', 'L-A8827666'],
  'ml.p4de.24xlarge': ['L-D948A761', 'L-CE8E42E7', 'L-A24FA80D'],
  'ml.p5.48xlarge': ['L-82E1C851', 'L-82733FAD', 'L-5D321F81'],
  'ml.p5.4xlarge': ['L-C2764A80', 'L-42C5B178', 'L-E511AAB3'],
  'ml.p5e.48xlarge': ['L-F573984A', 'L-8051418F', 'L-B861EF4F'],
  'ml.p5en.48xlarge': ['L-1E48384D', 'L-16486321', 'L-28BE5719'],
  'ml.p6-b200.48xlarge': ['L-60EA3D74', 'L-08AE20C2', 'L-AC01B100'],
  'ml.r5.12xlarge': ['L-B307949A', 'L-300538CF', 'L-E1ACD1F8', 'L-20546400'],
  'ml.r5.16xlarge': ['L-45DB9C66', 'L-53570353', 'L-528EF552', 'L-06A1E8BB'],
  'ml.r5.24xlarge': ['L-03C8E8AF', 'L-4BAB566C', 'L-2F9D520B', 'L-A28AF48F'],
  'ml.r5.2xlarge': ['L-D4EE434E', 'L-558B6165', 'L-9F536CF3', 'L-F0132B48'],
  'ml.r5.4xlarge': ['L-B7AE5453', 'L-299FAE98', 'L-E2BDBB46', 'L-E4F6EF77'],
  'ml.r5.8xlarge': ['L-901586D2', 'L-F1ABFE8A', 'L-74B46909', 'L-154D0022'],
  'ml.r5.large': ['L-A810B462', 'L-7AB35940', 'L-4A319ECB', 'L-43562353'],
  'ml.r5.xlarge': ['L-E854D418', 'L-C57B8181', 'L-F9042956', 'L-B2D8E643'],
  'ml.r5d.12xlarge': ['L-718F98E5', 'L-F81A365E', 'L-8CC2A52D'],
  'ml.r5d.16xlarge': ['L-4CC2593C', 'L-70A53B0D', 'L-67E7209D'],
  'ml.r5d.24xlarge': ['L-EAA40023', 'L-8F6952F2', 'L-B54F7F84'],
  'ml.r5d.2xlarge': ['L-22E1BC00', 'L-3870264F', 'L-7036F14A'],
  'ml.r5d.4xlarge': ['L-57D137CF', 'L-7C5EE730', 'L-899D2891'],
  'ml.r5d.8xlarge': ['L-BD05AE89', 'L-86845C1F', 'L-524FDA45'],
  'ml.r5d.large': ['L-F41659C8', 'L-744ED636', 'L-5B66C272'],
  'ml.r5d.xlarge': ['L-FA13E20B', 'L-0544E72F', 'L-5C31AAE1'],
  'ml.r7i.12xlarge': ['L-E31E799C', 'L-589D9467', 'L-7882E313'],
  'ml.r7i.16xlarge': ['L-3E534129', 'L-F62D1B89', 'L-82FF331C'],
  'ml.r7i.24xlarge': ['L-DE40B39E', 'L-8510FD88', 'L-F0D9539F'],
  'ml.r7i.2xlarge': ['L-06AB0AAC', 'L-25EC3C78', 'L-23426920'],
  'ml.r7i.48xlarge': ['L-F5012757', 'L-260E95A6', 'L-64D52F6C'],
  'ml.r7i.4xlarge': ['L-0665041B', 'L-326E6232', 'L-6FA7C073'],
  'ml.r7i.8xlarge': ['L-FFABC174', 'L-0B434972', 'L-BCBB517D'],
  'ml.r7i.large': ['L-732722E0', 'L-E4156D7D', 'L-2F20345E'],
  'ml.r7i.xlarge': ['L-B6A6325E', 'L-F7D04A63', 'L-31F66640'],
  'ml.t3.2xlarge': ['L-57AC4E19', 'L-39AB5000', 'L-40D07D7F', 'L-1E2072C0'],
  'ml.t3.large': ['L-B95AAE44', 'L-4C7F99A0', 'L-B7A07BB4', 'L-C076FA77'],
  'ml.t3.medium': [undefined, undefined, undefined, 'L-0CE343FE'],
  'ml.t3.xlarge': ['L-823DAB46', 'L-8CD1FE93', 'L-5F747AE6', 'L-DABA7ED5'],
  'ml.trn1.2xlarge': ['L-74F2FC79', 'L-AA22B8B9', 'L-AA6A4B7A'],
  'ml.trn1.32xlarge': ['L-79A1FE57', 'L-F594DE31', 'L-36F422F7'],
  'ml.trn1n.32xlarge': ['L-BFB9CF17', 'L-068DB6B3', 'L-9037D736'],
};

/** Quota codes by instance type and usage. */
export const INSTANCE_QUOTA_CODES: Readonly<Record<string, Partial<Record<QuotaUsage, string>>>> = Object.fromEntries(
  Object.entries(ROWS).map(([type, codes]) => [
    type,
    Object.fromEntries(USAGES.flatMap((usage, i) => (codes[i] === undefined ? [] : [[usage, codes[i]]]))),
  ]),
);

/** Quotas that do not depend on an instance type; `default` is AWS's default, not an account's limit. */
export const GENERAL_QUOTAS: Readonly<Record<string, { name: string; default?: number; unit?: string }>> = {
  'L-33A961FD': { name: 'Longest run time for a training job', default: 432000, unit: 'seconds' },
  'L-00C91CB5': { name: 'Number of instances across all training jobs', default: 4, unit: 'instances' },
  'L-93958082': { name: 'Number of instances across all spot training jobs', default: 4, unit: 'instances' },
  'L-622CFD70': { name: 'Maximum number of instances per training job', default: 20, unit: 'instances' },
  'L-DB62C864': { name: 'Maximum number of instances per spot training job', default: 20, unit: 'instances' },
  'L-C5A266EB': { name: 'Size of EBS volume for a training job instance', default: 1024, unit: 'GB' },
  'L-867702E6': { name: 'Number of training plans per Region', unit: 'plans' },
  'L-F311B08F': { name: 'Number of instances across all processing jobs', default: 4, unit: 'instances' },
  'L-A5D63399': { name: 'Maximum number of instances per processing job', unit: 'instances' },
  'L-EA47BDD3': { name: 'Longest run time for a processing job', unit: 'seconds' },
  'L-D7BEE2A3': { name: 'Size of EBS volume for a processing job instance', unit: 'GB' },
  'L-52DB9D33': {
    name: 'Maximum number of training jobs that each hyperparameter tuning job with Random search strategy can create',
    unit: 'jobs',
  },
};

/** A SageMaker quota by name, and by code if AWS publishes it. */
export interface QuotaRef {
  /** Service Quotas code; if absent, look up `name` at run time. */
  code?: string;
  /** QuotaName, as in Service Quotas and in ResourceLimitExceeded messages. */
  name: string;
}

/** Codes of quotas that do not depend on an instance type. */
export const QUOTA = {
  longestRunSeconds: 'L-33A961FD',
  instancesAcrossTraining: 'L-00C91CB5',
  instancesAcrossSpot: 'L-93958082',
  instancesPerTraining: 'L-622CFD70',
  instancesPerSpot: 'L-DB62C864',
  ebsVolumeGiB: 'L-C5A266EB',
  instancesAcrossProcessing: 'L-F311B08F',
  trainingPlans: 'L-867702E6',
} as const;

const NAME_OF_USAGE: Readonly<Record<QuotaUsage, string>> = {
  training: 'training job usage',
  spot: 'spot training job usage',
  'warm-pool': 'training warm pool usage',
  processing: 'processing job usage',
};

/** The quota of `instanceType` for one usage kind. */
export function instanceQuota(instanceType: string, usage: QuotaUsage): QuotaRef {
  return {
    code: INSTANCE_QUOTA_CODES[instanceType]?.[usage],
    name: `${instanceType} for ${NAME_OF_USAGE[usage]}`,
  };
}

/** A quota that does not depend on an instance type. */
export function generalQuota(code: string): QuotaRef {
  return { code, name: GENERAL_QUOTAS[code]?.name ?? code };
}
