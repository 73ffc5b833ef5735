module cloud.google.com/go/cloudsqlconn

go 1.26.0
