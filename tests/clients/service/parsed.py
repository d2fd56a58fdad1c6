"""A YAML file as JSON; with `--kubernetes`, each of its objects must be valid by the schemas of two versions, strictly."""

import json
import sys

import yaml

documents = list(yaml.safe_load_all(open(sys.argv[1])))
if "--kubernetes" in sys.argv:
    import kubernetes_validate

    for document in documents:
        for version in ("1.33", "1.36"):
            kubernetes_validate.validate(document, version, strict=True)
    documents[0]["spec"]["replica"] = documents[0]["spec"].pop("replicas")
    try:
        kubernetes_validate.validate(documents[0], "1.36", strict=True)
        sys.exit("a slip is not seen")
    except kubernetes_validate.ValidationError:
        documents[0]["spec"]["replicas"] = documents[0]["spec"].pop("replica")
print(json.dumps(documents))
