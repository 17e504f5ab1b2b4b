#### curl
stands localhost:8080 $METRICS
